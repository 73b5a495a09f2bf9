"""Finds out which trainers still make updates, so that the chief saves those as well.

Each trainer but the chief stores its state in a key-value entry on the first parameter server:
"trains" when it has met its peers and opens its session, and "left" after its last update.
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

GRACE_SECS = 8.0  # Time for a trainer with a closed port, which may be about to restart.
# Time for a thread that waits for gradients of replicas, which no longer send any.
REPLICAS_GRACE_SECS = 2.0
_SILENCE_SECS = 60.0  # Time for a trainer that does not answer, as on a busy machine.
_REPORT_SECS = 5.0
_PAUSE_SECS = 0.3
_TRAINS, _LEFT = "trains", "left"


class Departures:
    """The announcements of the trainers to the chief, if each trainer runs the program itself.

    Args:
      place: target and task of the server that holds the entries.
      trainers: addresses of all trainers by name, the chief first.
      own: the name of this trainer.
    """

    def __init__(self, place: tuple[str, Task], trainers: Mapping[str, str], own: str) -> None:
        self._place, self._trainers, self._own = place, dict(trainers), own
        self.is_chief = own == next(iter(trainers))

    def enter(self) -> None:
        """Announces that this trainer makes updates from now on; does nothing on the chief."""
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
        """Blocks the chief until no other trainer makes updates; returns whether it waited for one.

        A trainer is lost if its port is closed for a few seconds, or if it does not answer for a
        minute; the chief does not wait for it. A trainer that has not begun has `absent_secs` to do
        so; `say` logs which trainers may begin later. The wait ends when `gives_up` returns true.
        """
        if not self.is_chief:
            return False
        remaining = {name: address for name, address in self._trainers.items() if name != self._own}
        begun = reported = time.monotonic()
        until = dict.fromkeys(remaining, begun + absent_secs)  # When the patience with each ends.
        answered = dict.fromkeys(remaining, begun)
        waited, late = False, set()
        # The chief's next call reports a lost parameter server.
        with contextlib.suppress(tf1.errors.OpError, PeerError):
            while remaining and not gives_up():
                states = side_by_side({n: functools.partial(self._state, n) for n in remaining})
                remaining = {
                    name: remaining[name] for name, state in states.items() if state != _LEFT
                }
                there = {n: functools.partial(reason_not_serving, remaining[n]) for n in remaining}
                now = time.monotonic()
                for name, reason in side_by_side(there).items():
                    if states[name] == _TRAINS and reason is None:
                        waited, answered[name], until[name] = True, now, now + GRACE_SECS
                    elif reason not in (None, "refused"):
                        until[name] = max(until[name], answered[name] + _SILENCE_SECS)
                    if now >= until[name] and reason is None:
                        late.add(name)
                remaining = {name: remaining[name] for name in remaining if now < until[name]}
                if remaining and now >= reported + _REPORT_SECS:
                    reported = now
                    say(
                        "the chief has made its updates; waiting for those of "
                        + ", ".join(remaining)
                    )
                time.sleep(_PAUSE_SECS if remaining else 0)
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
    """Whether a graph has synchronous replicas, which make no updates after their chief's end."""
    return any(op.type.endswith("ConditionalAccumulator") for op in graph.get_operations())


def save_rest(
    waited: bool,
    saver: Any,
    read_step: Callable[[], Any] | None,
    save: Callable[[], object],
    say: Callable[[str], object] = print,
) -> None:
    """Makes a chief save the updates of other trainers that its newest checkpoint lacks.

    Args:
      waited: whether the chief has waited for updates, which `wait_for_others` returns.
      saver: the `tf.compat.v1.train.Saver` of the chief.
      read_step: reads the global step; None if the program has none.
      save: writes a checkpoint.
      say: logs that the updates cannot be saved.
    """
    try:
        # Another trainer may have made its last updates after the checkpoint, and left.
        if waited or (read_step is not None and not _has_saved(saver, read_step())):
            save()
    except RuntimeError:  # The program has closed the session.
        if waited:
            say("nobody saves the updates since the chief closed its session")


def _has_saved(saver: Any, step: Any) -> bool:
    return any(prefix.endswith(f"-{step}") for prefix in saver.last_checkpoints[-1:])


def _key(trainer: str) -> str:
    return "compat_departure" + trainer.replace("/job:", "_").replace("/task:", "_")
