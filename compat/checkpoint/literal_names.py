r"""Literal names of checkpoints with `[`, `*`, `?` or `\`, which TensorFlow reads as patterns.

TensorFlow's savers find and delete checkpoints by patterns; so do its readers and its restore
operation, in C++.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from typing import Iterator

_SPECIAL = re.compile(r"[*?\[\]\\]")
# Before TensorFlow 0.12 the prefix of a checkpoint of several files is itself a pattern.
_SHARDS = re.compile(r"(?:-\?{5}-of-\d{5})?\Z")


def pattern(prefix: str) -> str:
    """Returns a pattern that matches only this prefix in TensorFlow."""
    end = _SHARDS.search(prefix)
    assert end is not None
    return _SPECIAL.sub(r"\\\g<0>", prefix[: end.start()]) + end.group()


@contextlib.contextmanager
def readable(prefix: str) -> Iterator[str]:
    """Yields a prefix under which TensorFlow can read a checkpoint inside the context.

    This is `prefix` itself, unless it has special characters. Then it is the prefix of temporary
    links to the files, which all processes of this machine can read.
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
