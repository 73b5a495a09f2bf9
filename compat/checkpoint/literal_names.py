r"""Names of checkpoints as they are, where TensorFlow takes `[`, `*`, `?` and `\` for a pattern.

Its savers look for a checkpoint, and delete old ones, by patterns; so do its readers and the
operation that restores, in C++.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from typing import Iterator

_SPECIAL = re.compile(r"[*?\[\]\\]")
# The prefix of a checkpoint of several files before TensorFlow 0.12 is a pattern by itself.
_SHARDS = re.compile(r"(?:-\?{5}-of-\d{5})?\Z")


def pattern(prefix: str) -> str:
    """Returns the pattern of TensorFlow's that only this prefix matches."""
    end = _SHARDS.search(prefix)
    assert end is not None
    return _SPECIAL.sub(r"\\\g<0>", prefix[: end.start()]) + end.group()


@contextlib.contextmanager
def readable(prefix: str) -> Iterator[str]:
    """Yields a prefix under which TensorFlow reads a checkpoint, while inside.

    It is `prefix` itself unless that has special characters: then links to its files have another
    name, which processes of this machine can read.
    """
    folder, name = os.path.split(prefix)
    if not _SPECIAL.search(_SHARDS.sub("", prefix)) or "://" in prefix:
        yield prefix
        return
    with tempfile.TemporaryDirectory() as links:
        if os.path.exists(prefix + ".index"):
            for file in os.listdir(folder or "."):
                if file.startswith(name + "."):
                    link = os.path.join(links, "checkpoint" + file[len(name) :])
                    os.symlink(os.path.abspath(os.path.join(folder, file)), link)
            yield os.path.join(links, "checkpoint")
        else:
            os.symlink(os.path.abspath(folder or "."), os.path.join(links, "folder"))
            yield os.path.join(links, "folder", name)
