"""The hook with which a chief's session waits for the updates of the other trainers."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1
from compat.cluster.liveness.departures import Departures, updates_together


class DepartureHook(tf1.train.SessionRunHook):
    """Delays the end of the chief's later hooks, one of which `saves`, until no updates follow."""

    def __init__(
        self, departures: Departures, saves: bool, say: Callable[[str], object] = print
    ) -> None:
        self._departures, self._waits, self._say = departures, saves, say

    def begin(self) -> None:
        """Called when the graph is complete."""
        self._waits = self._waits and not updates_together(tf1.get_default_graph())

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called with each session."""
        del session, coord
        self._departures.enter()

    def end(self, session: Any) -> None:
        """Called after the last call of a session that ends without an error."""
        del session
        self._departures.leave()
        if self._waits:
            self._departures.wait_for_others(self._say)
