"""Reads the log folder of a run without changing it."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import Callable

from compat.checkpoint.io import CheckpointIO
from compat.cluster.liveness.monitor import Monitor
from compat.errors import UserError
from compat.tracking.console import LOG
from compat.tracking.tensorboard.eventfile import event_files

_FIRST_REPORT_SECS = 30.0
_LONGEST_SILENCE_SECS = 3600.0


def newest_checkpoint(logdir: str) -> str | None:
    """Returns the prefix of the newest checkpoint; None if there is none, or it cannot be read."""
    with contextlib.suppress(UserError, OSError):
        return next(reversed(CheckpointIO(logdir).history()), None)
    return None


def activity_monitor(logdir: str, clock: Callable[[], float] = time.monotonic) -> Monitor:
    """Returns a monitor that watches a chief of unknown address by the files that the chief writes.

    The chief counts as lost when no file has changed for an hour, by the clock of this machine.
    """
    files_of_chief = [os.path.join(logdir, name) for name in ("checkpoint", LOG)]
    seen: dict[str, tuple[int, int]] = {}

    def check() -> str | None:
        nonlocal seen
        before, seen = seen, {}
        for path in [*files_of_chief, *event_files(logdir)]:
            with contextlib.suppress(OSError):
                found = os.stat(path)
                seen[path] = found.st_mtime_ns, found.st_size
        return "no change" if seen == before else None

    check()

    return Monitor(
        {f"the chief of {logdir}": check},
        _LONGEST_SILENCE_SECS,
        report=lambda line: None,  # A pause of minutes between two records is normal.
        clock=clock,
    )


@dataclass
class Wait:
    """Reports what is waited for: after half a minute, and each time the wait has doubled."""

    say: Callable[[str], object] = print
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Starts the time of a new wait."""
        self._since = self.clock()
        self._next = _FIRST_REPORT_SECS

    def go_on(self, what: str) -> None:
        """Reports a wait for `what` if it is time to."""
        waited = self.clock() - self._since
        if waited >= self._next:
            self._next = 2 * waited
            self.say(f"waiting for {what} ({waited:.0f} s)")
