"""Suppresses log lines of TensorFlow's startup that its log level does not control."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import Iterator

_NOTE = (
    r"I0000 |WARNING: All log messages before absl::InitializeLog|\d{4}-.*: I "
    # Until about 2.19 TensorFlow registers the GPU libraries twice, with or without a GPU.
    r"|(\d{4}-.*: E |E0000 ).*Unable to register cu\w+ factory"
    r"|W0000 .*computation placer already registered"
    # 2.17 ignores every setting.
    r"|W0000 .*Unable to destroy server_ object"
)
# The configuration of a server, which follows its log line.
_MORE = r"\s*(\w+ \{|\w+: .*|\})?$"
# Runs in a process of its own, which outlives one that aborts.
_FILTER = """
import re, sys
note, more = (re.compile(pattern.encode()) for pattern in sys.argv[1:])
in_note = False
for line in sys.stdin.buffer:
    in_note = bool(note.match(line) or in_note and more.match(line))
    if not in_note:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
"""
_LAST_LINES_SECS = 5.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Removes TensorFlow's notes from the standard error of the context.

    TensorFlow 2.16 and later write some notes before any setting takes effect. Nothing else is
    lost.
    """
    if sys.stderr is None:  # Standard error is closed.
        yield
        return
    sys.stderr.flush()
    # No site-packages, to start fast. The process ends with the pipe. Stop signals do not end it,
    # since they may reach all processes of a program; see `compat.processes.stop_signals`.
    command = [sys.executable, "-I", "-S", "-c", _FILTER, _NOTE, _MORE]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    shown = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert shown.stdin is not None
    kept = os.dup(2)
    os.dup2(shown.stdin.fileno(), 2)
    shown.stdin.close()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        # A child process still has the pipe open.
        with contextlib.suppress(subprocess.TimeoutExpired):
            shown.wait(_LAST_LINES_SECS)
