"""Kills the process groups of a launcher that ended without doing so, as after SIGKILL.

A small process of its own waits for the end of a pipe whose other end only the launcher holds; the
kernel closes that end whatever the launcher died of. Other than Linux' PR_SET_PDEATHSIG this works
on macOS as well, and reaches grandchildren.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO, cast

_PROGRAM = """
import os, signal, sys
watched = set()
for number in map(int, sys.stdin.read().split()):
    if number > 0:
        watched.add(number)
    else:
        watched.discard(-number)
for group in watched:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Watchdog:
    """Watches over the process groups that `join` and have not been told to `leave`."""

    def __init__(self) -> None:
        # A session of its own, so that Ctrl-C does not reach it; no site-packages, to start fast.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self._pipe = cast(IO[bytes], self._process.stdin)

    def join(self) -> None:
        """Puts the calling process' own group under watch.

        For `preexec_fn`: called by the child itself, no moment is left in which the launcher can
        die unnoticed. It runs between fork and exec, hence does nothing but a write.
        """
        self._pipe.write(b"%d " % os.getpid())

    def leave(self, group: int) -> None:
        """Ends the watch over a group that is empty, since its number may be given out anew."""
        self._pipe.write(b"%d " % -group)

    def close(self) -> None:
        """Ends the watchdog, which kills the groups that have not left."""
        self._pipe.close()
        self._process.wait()
