"""Messages between the tasks that train: what they train, what data they used, and an early end.

They are key-value entries on a parameter server. Only asynchronous workers of the legacy runtime
need the message of an early end: synchronous workers agree on the end, and a coordinator makes no
more updates.
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
    """Returns what has to be the same in all tasks, by its name in error messages."""
    shapes = sorted(f"{v.name} {v.shape} {v.dtype.name}" for v in variables)
    return {
        "--batch_size": str(settings.batch_size),
        "the data's checksum": data.checksum[:12] or "none, of a stream",
        "the model": hashlib.sha256("\n".join(shapes).encode()).hexdigest()[:12],
    }


def publish(server: compat.Server, mine: dict[str, str]) -> None:
    """Stores the chief's fingerprint on the parameter server, for `check` in other tasks."""
    key_value.write(*key_value.place(server.cluster), _TRAINS_ON, json.dumps(mine))


def check(server: compat.Server, mine: dict[str, str], patience: float) -> None:
    """Raises a `UserError` if a task's fingerprint differs from the chief's.

    It waits at most `patience` seconds for the chief's fingerprint, and then returns without one.
    """
    deadline = time.monotonic() + patience
    found = key_value.read(*key_value.place(server.cluster), _TRAINS_ON)
    while found is None and time.monotonic() < deadline:
        time.sleep(_WAIT_SECS)
        found = key_value.read(*key_value.place(server.cluster), _TRAINS_ON)
    if found is None:
        return  # The chief is lost; another call reports that when it needs the chief.
    chiefs: dict[str, str] = json.loads(found)
    for name, value in mine.items():
        if chiefs.get(name) != value:
            raise UserError(
                f"{name} is {value} in {server.task.name} and {chiefs.get(name)} in the chief; "
                "start all tasks with the same program, settings and data"
            )


def announce_early_end(server: compat.Server | None) -> None:
    """Announces that the run ends early, to the workers that poll `EarlyEnd`."""
    if server is not None and not server.has_coordinator:
        # A lost server is reported by the next update.
        with contextlib.suppress(tf1.errors.OpError):
            key_value.write(*key_value.place(server.cluster), _ENDS_EARLY, "1")


def resume(
    settings: Any, server: compat.Server | None, step: int, tally: Tally, mine: dict[str, str]
) -> bool:
    """Adds to a tally the data that workers had used before; returns whether that is known.

    The chief reads the numbers from the log folder, for the checkpoint of the global step `step`,
    and stores them for workers that start. A worker that was restarted finds those that it stored
    itself. `mine` is this task's fingerprint, which a worker compares with the chief's.
    """
    if server is not None and not server.is_chief:
        check(server, mine, settings.rendezvous_timeout)
        own = _read_seen(server, str(tally.own))
        tally.resume({} if own is None else {str(tally.own): own})
        return own is not None
    found = seen.read(settings.logdir, step, tally.workers)
    tally.resume(found or {})
    # In a new run the numbers are 0, and have to be stored, too: by the global step, a worker that
    # starts late cannot tell that it has used nothing.
    if server is not None and tally.own is not None and (found is not None or step == 0):
        for name in tally.workers:
            if name != tally.own and _read_seen(server, name) is None:
                _write_seen(server, name, tally)
    return found is not None


def announce_seen(server: compat.Server, tally: Tally) -> None:
    """Stores how many batches and examples this worker has used."""
    if tally.own in tally.seen():
        _write_seen(server, str(tally.own), tally)


def take_seen(server: compat.Server | None, tally: Tally) -> None:
    """Adds to a tally how much data the other workers have used, as far as they have stored it."""
    own = tally.seen().get(str(tally.own))
    # A lost server is reported by the next update.
    with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
        for name in tally.workers:
            if server is not None and tally.own is not None and name != tally.own:
                # Workers that make each update together have used the same number of batches.
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
    """Polls whether the chief has announced an early end; a worker polls between its updates.

    Each poll also stores how much data the worker has used.
    """

    def __init__(self, server: compat.Server, tally: Tally) -> None:
        self._server, self._tally = server, tally
        self._polled = time.monotonic()
        self._step = -1

    def poll(self, step: int) -> bool:
        """Returns whether the run ends early; asks the parameter server every three seconds.

        It asks at once if the global step has not changed since the last call: a synchronous worker
        whose chief has exited has only a few tokens of `SyncReplicasOptimizer` left, after which it
        would wait forever.
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
