"""The hook with which a chief's session waits for the updates of the other trainers."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1
from compat.cluster.liveness.departures import Departures, updates_together


class DepartureHook(tf1.train.SessionRunHook):
    """Makes the chief wait, at the end of its session, until no other trainer makes updates.

    Hooks after this one end after the wait, so that one of them can save these updates. If none of
    them saves (`saves` is false), the chief does not wait.
    """

    def __init__(
        self, departures: Departures, saves: bool, say: Callable[[str], object] = print
    ) -> None:
        self._departures, self._waits, self._say = departures, saves, say

    def begin(self) -> None:
        """Disables the wait for synchronous replicas, which make no updates without the chief."""
        self._waits = self._waits and not updates_together(tf1.get_default_graph())

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Announces that this trainer makes updates, so that the chief waits for them at its end.

        The announcement is repeated for each session, since `end` withdraws it.
        """
        del session, coord
        self._departures.enter()

    def end(self, session: Any) -> None:
        """Announces that this trainer makes no more updates; makes the chief wait for others."""
        del session
        self._departures.leave()
        if self._waits:
            self._departures.wait_for_others(self._say)
