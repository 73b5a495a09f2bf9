"""How often a failed task is started again, and after what pauses."""

from __future__ import annotations

import collections

from compat.errors import may_pass

_FIRST_PAUSE_SECS = 1.0
_LONGEST_PAUSE_SECS = 30.0
# Who has run for as long did not fail at once, so there is no need to wait ever longer.
_AT_ONCE_SECS = 10.0


class Restarts:
    """Counts how often each task was started again.

    Args:
      most: how often one task may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: collections.Counter[str] = collections.Counter()
        self._pauses: dict[str, float] = {}

    def pause(self, name: str, exit_code: int, ran: float) -> float | None:
        """Counts one restart of a task.

        Args:
          name: of the task.
          exit_code: with which it has failed.
          ran: for how many seconds it had run.

        Returns:
          The seconds until it is to be started again, twice as many each time that it has failed
          at once; None if it is not.
        """
        if not may_pass(exit_code) or self._counts[name] >= self._most:
            return None
        before = self._pauses.get(name, 0.0) if ran < _AT_ONCE_SECS else 0.0
        self._pauses[name] = min(max(2 * before, _FIRST_PAUSE_SECS), _LONGEST_PAUSE_SECS)
        self._counts[name] += 1
        return self._pauses[name]

    def count(self, name: str) -> str:
        """Returns how often a task was started again, as "1 of 3"."""
        return f"{self._counts[name]} of {self._most}"
