"""Decides how often a failed task is restarted, and after which pauses."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Callable, Container

from compat import errors
from compat.errors import PeerError

_FIRST_PAUSE_SECS = 1.0
_LONGEST_PAUSE_SECS = 30.0
# A task that has run for this long did not fail at once, so its next pause is short again.
_AT_ONCE_SECS = 10.0


@dataclass(eq=False)
class Restarts:
    """Counts the restarts of each task; a task may have `most` restarts by its own fault.

    A restart is not counted if the task has lost a peer, and another task has had a counted restart
    since this task's previous failure. So a counted restart excuses each other task at most once,
    and tasks that keep losing each other are given up, too. Tasks in `beside`, which no other task
    needs, excuse none. `is_retryable` returns whether a task that ended with an exit code may
    succeed in another start.
    """

    most: int
    beside: Container[str] = ()
    is_retryable: Callable[[int], bool] = errors.is_retryable

    def __post_init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()
        self._known: collections.Counter[str] = collections.Counter()
        self._excused: set[str] = set()
        self._pauses: dict[str, float] = {}

    def pause(self, name: str, exit_code: int, ran: float) -> float | None:
        """Counts a restart of a task that failed after `ran` seconds.

        Returns the seconds to wait before the restart, or None if the task is to be given up.
        """
        if not self.is_retryable(exit_code):
            return None
        if self._is_excused(name, exit_code):
            self._excused.add(name)
        elif self._counts[name] >= self.most:
            return None
        else:
            self._excused.discard(name)
            self._counts[name] += 1
        before = self._pauses.get(name, 0.0) if ran < _AT_ONCE_SECS else 0.0
        self._pauses[name] = min(max(2 * before, _FIRST_PAUSE_SECS), _LONGEST_PAUSE_SECS)
        return self._pauses[name]

    def _is_excused(self, name: str, exit_code: int) -> bool:
        """Returns whether another task's restart since the last failure excuses this failure."""
        counts = self._counts.items()
        spent = sum(n for other, n in counts if other != name and other not in self.beside)
        others_failed, self._known[name] = spent > self._known[name], spent
        return others_failed and exit_code == PeerError.exit_code

    def count(self, name: str) -> str:
        """Returns the number of counted restarts, as "1 of 3", or why this one does not count."""
        if name in self._excused:
            return "not counted: it lost another task"
        return f"{self._counts[name]} of {self.most}"
