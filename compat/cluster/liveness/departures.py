"""Finds out which trainers still make updates, so that the chief saves those as well.

Each trainer but the chief has a key-value entry on the first parameter server: that it trains, from
the opening of its session on, and that it has left, once it makes no more updates in it.
"""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any, Callable, Mapping

from compat._tensorflow import tf1
from compat.cluster.liveness import key_value
from compat.cluster.liveness.monitor import side_by_side
from compat.cluster.liveness.probe import reason_not_serving
from compat.cluster.spec import Task
from compat.errors import PeerError

GRACE_SECS = 8.0  # For a trainer whose port is closed: it may just be started again.
# For the thread of a session that waits for the next gradients of replicas: none come any more.
REPLICAS_GRACE_SECS = 2.0
_SILENCE_SECS = 60.0  # For one that does not answer, such as on a busy machine.
_REPORT_SECS = 5.0
_PAUSE_SECS = 0.3
_TRAINS, _LEFT = "trains", "left"


class Departures:
    """What trainers whose updates are their own tell the chief, which is the first of them.

    Args:
      place: the server that holds the entries: target and task.
      trainers: the addresses of all that train by name, the chief's first.
      own: the name of this one.
    """

    def __init__(self, place: tuple[str, Task], trainers: Mapping[str, str], own: str) -> None:
        self._place, self._trainers, self._own = place, dict(trainers), own
        self.is_chief = own == next(iter(trainers))

    def enter(self) -> None:
        """Announces that this trainer makes updates from now on; a chief need not."""
        self._announce(_TRAINS)

    def leave(self) -> None:
        """Announces that this trainer makes no more updates in its session."""
        self._announce(_LEFT)

    def wait_for_others(
        self,
        say: Callable[[str], object] = print,
        gives_up: Callable[[], bool] = lambda: False,
        absent_secs: float = GRACE_SECS,
    ) -> bool:
        """Blocks the chief until no other makes updates; returns whether one still did.

        A trainer whose port is closed for a few seconds is lost, and is not waited for, nor is one
        that does not answer for a minute. One that has not begun yet is given `absent_secs`.
        `gives_up` is called all the time. A line names those that are there and may begin later.
        """
        if not self.is_chief:
            return False
        left = {name: address for name, address in self._trainers.items() if name != self._own}
        begun = reported = time.monotonic()
        until = dict.fromkeys(left, begun + absent_secs)  # When the patience with each ends.
        answered = dict.fromkeys(left, begun)
        waited, late = False, set()
        # A parameter server that is lost is reported by what the chief does next.
        with contextlib.suppress(tf1.errors.OpError, PeerError):
            while left and not gives_up():
                found = side_by_side({n: functools.partial(self._state, n) for n in left})
                left = {name: left[name] for name, state in found.items() if state != _LEFT}
                there = {n: functools.partial(reason_not_serving, left[n]) for n in left}
                now = time.monotonic()
                for name, reason in side_by_side(there).items():
                    if found[name] == _TRAINS and reason is None:
                        waited, answered[name], until[name] = True, now, now + GRACE_SECS
                    elif reason not in (None, "refused"):
                        until[name] = max(until[name], answered[name] + _SILENCE_SECS)
                    if now >= until[name] and reason is None:
                        late.add(name)
                left = {name: left[name] for name in left if now < until[name]}
                if left and now >= reported + _REPORT_SECS:
                    reported = now
                    say(f"the chief has made its updates; waiting for those of {', '.join(left)}")
                time.sleep(_PAUSE_SECS if left else 0)
        if late:
            say(f"{', '.join(sorted(late))} made no update yet; nobody saves those of later")
        return waited

    def _announce(self, state: str) -> None:
        if self.is_chief:
            return
        # A parameter server that is lost is reported elsewhere.
        with contextlib.suppress(tf1.errors.OpError, PeerError):
            key_value.write(*self._place, _key(self._own), state)

    def _state(self, trainer: str) -> str | None:
        return key_value.read(*self._place, _key(trainer))


def updates_together(graph: Any) -> bool:
    """Whether a graph has replicas whose updates need their chief: none come after its end."""
    return any(op.type.endswith("ConditionalAccumulator") for op in graph.get_operations())


def _key(trainer: str) -> str:
    return "compat_departure" + trainer.replace("/job:", "_").replace("/task:", "_")
