"""A program that was forked from a process that has loaded TensorFlow."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Callable

_POLL_SECS = 0.02


class Forked:
    """A forked program, with the methods of `subprocess.Popen` for a running one.

    Attributes:
      pid: The process id, which is also the id of its session and process group.
      returncode: As for `Popen`, None until `poll` or `wait` has noticed the end.
    """

    def __init__(self, pid: int, code_of: Callable[[int], int | None]) -> None:
        self.pid = pid
        self._code_of = code_of
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, -n after signal n; None while the program runs."""
        if self.returncode is None:
            self.returncode = self._code_of(self.pid)
        return self.returncode

    def kill(self) -> None:
        """Kills the program, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit code when the program has ended.

        Raises:
          subprocess.TimeoutExpired: It still runs after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_POLL_SECS)
        assert self.returncode is not None
        return self.returncode
