"""Loading TensorFlow, and starting servers, without notes that no setting of its log prevents."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from typing import Iterator

_NOTE = re.compile(
    rb"I0000 |WARNING: All log messages before absl::InitializeLog|\d{4}-.*: I "
    # Until 2.19 or so TensorFlow registers the libraries of GPUs twice, GPU or not, and complains.
    rb"|(\d{4}-.*: E |E0000 ).*Unable to register cu\w+ factory"
    rb"|W0000 .*computation placer already registered"
    # 2.17 heeds no setting at all.
    rb"|W0000 .*Unable to destroy server_ object"
)
# The configuration of a server, which its note goes on with.
_MORE = re.compile(rb"\s*(\w+ \{|\w+: .*|\})?$")


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Holds back what is written to standard error inside; then shows all but TensorFlow's notes.

    TensorFlow 2.16 and later write some lines before any setting takes effect, and 2.17 others
    after it. They say nothing that our users need, four times in a cluster of four. Nothing else
    is lost: all other lines appear when the body is left, also by an exception.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            in_note = False
            for line in held:
                in_note = bool(_NOTE.match(line) or in_note and _MORE.match(line))
                if not in_note:
                    os.write(2, line)
