"""Suppresses log lines of TensorFlow's startup that its log level does not control."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from typing import Iterator

_NOTE = re.compile(
    rb"I0000 |WARNING: All log messages before absl::InitializeLog|\d{4}-.*: I "
    # Until about 2.19 TensorFlow registers the GPU libraries twice, with or without a GPU.
    rb"|(\d{4}-.*: E |E0000 ).*Unable to register cu\w+ factory"
    rb"|W0000 .*computation placer already registered"
    # 2.17 ignores every setting.
    rb"|W0000 .*Unable to destroy server_ object"
)
# The configuration of a server, which follows its log line.
_MORE = re.compile(rb"\s*(\w+ \{|\w+: .*|\})?$")


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Buffers standard error and, on exit, writes it without TensorFlow's startup messages.

    TensorFlow 2.16 and later log some lines before any setting takes effect, and 2.17 others after
    it, in each process of a cluster. All other lines are written on exit, also after an exception.
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
