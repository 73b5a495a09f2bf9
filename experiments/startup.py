"""Loading TensorFlow without the notes that it prints before its log can be set."""

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
)


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Holds back what is written to standard error inside; then shows all but TensorFlow's notes.

    TensorFlow 2.16 and later write some lines before any setting takes effect. They say nothing
    that our users need, four times in a cluster of four. Nothing else is lost: all other lines
    appear when the body is left, also by an exception.
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
            for line in held:
                if not _NOTE.match(line):
                    os.write(2, line)
