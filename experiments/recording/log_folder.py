"""Reads the log folder of a run without changing it."""

from __future__ import annotations

import os
import time
from typing import Callable

from compat.checkpoint import files
from compat.errors import PeerError, UserError
from compat.tracking.console import LOG
from compat.tracking.tensorboard.eventfile import event_files

_FIRST_REPORT_SECS = 30.0
_LONGEST_SILENCE_SECS = 3600.0


def newest_checkpoint(logdir: str) -> str | None:
    """Returns the prefix of the newest checkpoint; None if there is none, or it is not to be told.

    What the chief does at this moment may make the difference.
    """
    try:
        prefixes = files.history(logdir)
    except (UserError, OSError):
        return None
    return prefixes[-1] if prefixes else None


class Silence:
    """Measures how long the log folder of a run has not changed.

    For a chief whose address is not known; others are asked by
    `compat.liveness.rendezvous.Lookout`. Of the files only changes count: the clock of another
    machine may differ from ours.
    """

    def __init__(self, logdir: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._logdir = logdir
        self._clock = clock
        self._seen = self._signs()
        self._since = clock()

    def look(self) -> None:
        """Looks whether the training gives signs of life.

        Raises:
          PeerError: it has given none for an hour.
        """
        signs = self._signs()
        if signs != self._seen:
            self._seen, self._since = signs, self._clock()
        if self._clock() - self._since > _LONGEST_SILENCE_SECS:
            raise PeerError(
                f"nothing has changed in {self._logdir} for {_LONGEST_SILENCE_SECS / 60:.0f} "
                "minutes, and the training has not said that it is over; start its chief, and "
                "this task again"
            )

    def _signs(self) -> list[tuple[str, int, int]]:
        paths = [os.path.join(self._logdir, name) for name in ("checkpoint", LOG)]
        signs = []
        for path in [*paths, *event_files(self._logdir)]:
            try:
                found = os.stat(path)
            except OSError:
                continue
            signs.append((path, found.st_mtime_ns, found.st_size))
        return signs


class Wait:
    """Says for what is waited: after half a minute, and whenever it has taken twice as long."""

    def __init__(
        self, say: Callable[[str], object] = print, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Begins anew: what was waited for has come."""
        self._since = self._clock()
        self._next = _FIRST_REPORT_SECS

    def go_on(self, what: str) -> None:
        """Says so if it is time to."""
        waited = self._clock() - self._since
        if waited >= self._next:
            self._next = 2 * waited
            self._say(f"waiting for {what} ({waited:.0f} s)")
