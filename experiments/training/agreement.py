"""What the tasks that train tell each other: that they train the same, and that it ends early.

Only asynchronous workers of the legacy runtime are told: replicas agree on it, and a coordinator
hands out no more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from typing import Any, Iterable

import compat
from compat import UserError, tf1
from compat.cluster.liveness import key_value
from experiments.training.recording import seen
from experiments.training.recording.tally import Tally

_TRAINS_ON = "trains_on"
_ENDS_EARLY = "training_ends_early"
_SEEN = "seen_by_"
_WAIT_SECS = 0.1
_POLL_SECS = 3.0  # A poll takes some 15 ms.


def fingerprint(settings: Any, data: Any, variables: Iterable[Any]) -> dict[str, str]:
    """Returns what has to be the same in all tasks, by the name that a message gives it."""
    shapes = sorted(f"{v.name} {v.shape} {v.dtype.name}" for v in variables)
    return {
        "--batch_size": str(settings.batch_size),
        "the data's checksum": data.checksum[:12] or "none, of a stream",
        "the model": hashlib.sha256("\n".join(shapes).encode()).hexdigest()[:12],
    }


def publish(server: compat.Server, mine: dict[str, str]) -> None:
    """Stores the chief's fingerprint where the other tasks find it."""
    key_value.write(*key_value.place(server.cluster), _TRAINS_ON, json.dumps(mine))


def check(server: compat.Server, mine: dict[str, str], patience: float) -> None:
    """Raises a `UserError` if a task's fingerprint is not the chief's, read within `patience` s."""
    deadline = time.monotonic() + patience
    found = key_value.read(*key_value.place(server.cluster), _TRAINS_ON)
    while found is None and time.monotonic() < deadline:
        time.sleep(_WAIT_SECS)
        found = key_value.read(*key_value.place(server.cluster), _TRAINS_ON)
    if found is None:
        return  # The chief is lost, which is reported where it is needed.
    chiefs: dict[str, str] = json.loads(found)
    for name, value in mine.items():
        if chiefs.get(name) != value:
            raise UserError(
                f"{name} is {value} in {server.task.name} and {chiefs.get(name)} in the chief; "
                "start all tasks with the same program, settings and data"
            )


def announce_early_end(server: compat.Server | None) -> None:
    """Announces the end to the workers that find out by `EarlyEnd`, if there are any."""
    if server is not None and not server.has_coordinator:
        # A lost server is reported by the next update.
        with contextlib.suppress(tf1.errors.OpError):
            key_value.write(*key_value.place(server.cluster), _ENDS_EARLY, "1")


def resume(
    settings: Any, server: compat.Server | None, step: int, tally: Tally, mine: dict[str, str]
) -> bool:
    """Gives a tally what the workers had used of their data; returns whether that is known.

    The chief finds it beside the checkpoint of the global step `step`, and stores it for workers
    that begin; a worker that was lost has stored it before. `mine` is this task's fingerprint.
    """
    if server is not None and not server.is_chief:
        check(server, mine, settings.rendezvous_timeout)
        own = _read_seen(server, str(tally.own))
        tally.resume({} if own is None else {str(tally.own): own})
        return own is not None
    found = seen.read(settings.logdir, step, tally.workers)
    tally.resume(found or {})
    # In a new run nothing was used, which a worker that begins amid it cannot tell by the step.
    if server is not None and tally.own is not None and (found is not None or step == 0):
        for name in tally.workers:
            if name != tally.own and _read_seen(server, name) is None:
                _write_seen(server, name, tally)
    return found is not None


def announce_seen(server: compat.Server, tally: Tally) -> None:
    """Stores what this worker has used of its data."""
    if tally.own in tally.seen():
        _write_seen(server, str(tally.own), tally)


def take_seen(server: compat.Server | None, tally: Tally) -> None:
    """Gives a tally what the other workers have used, as far as they have stored it."""
    own = tally.seen().get(str(tally.own))
    # A lost server is reported by the next update.
    with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
        for name in tally.workers:
            if server is not None and tally.own is not None and name != tally.own:
                # Workers that make each update together have used as many batches.
                tally.take(name, own if server.synchronous else _read_seen(server, name))


def _write_seen(server: compat.Server, worker: str, tally: Tally) -> None:
    entry = json.dumps(tally.seen().get(worker, (0, 0)))
    key_value.write(*key_value.place(server.cluster), _key(worker), entry)


def _read_seen(server: compat.Server, worker: str) -> tuple[int, int] | None:
    found = key_value.read(*key_value.place(server.cluster), _key(worker))
    if found is None:
        return None
    batches, examples = json.loads(found)
    return batches, examples


def _key(worker: str) -> str:
    return _SEEN + worker.replace(" ", "_")


class EarlyEnd:
    """Whether the chief has announced the end; a worker polls it between its updates.

    It announces then what it has used of its data.
    """

    def __init__(self, server: compat.Server, tally: Tally) -> None:
        self._server, self._tally = server, tally
        self._polled = time.monotonic()
        self._step = -1

    def poll(self, step: int) -> bool:
        """Returns whether the run ends early, as far as is known; asks every three seconds.

        And at once if the global step does not move: replicas whose chief has exited have few
        tokens left before they would wait without end.
        """
        now, before = time.monotonic(), self._step
        self._step = step
        if self._server.has_coordinator or (now - self._polled < _POLL_SECS and step != before):
            return False
        self._polled = now
        with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
            announce_seen(self._server, self._tally)
            return bool(key_value.read(*key_value.place(self._server.cluster), _ENDS_EARLY))
        return False
