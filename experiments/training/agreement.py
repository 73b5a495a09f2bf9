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
from compat.cluster.roles import chief_task
from compat.cluster.spec import Task
from compat.liveness import key_value

_TRAINS_ON = "trains_on"
_ENDS_EARLY = "training_ends_early"
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
    key_value.write(*_place(server), _TRAINS_ON, json.dumps(mine))


def check(server: compat.Server, mine: dict[str, str], patience: float) -> None:
    """Raises a `UserError` if a task's fingerprint is not the chief's, read within `patience` s."""
    deadline = time.monotonic() + patience
    found = key_value.read(*_place(server), _TRAINS_ON)
    while found is None and time.monotonic() < deadline:
        time.sleep(_WAIT_SECS)
        found = key_value.read(*_place(server), _TRAINS_ON)
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
    if server is not None and server.runtime == "legacy":
        # A lost server is reported by the next update.
        with contextlib.suppress(tf1.errors.OpError):
            key_value.write(*_place(server), _ENDS_EARLY, "1")


class EarlyEnd:
    """Whether the chief has announced the end; a worker polls it between its updates."""

    def __init__(self, server: compat.Server) -> None:
        self._server = server
        self._polled = time.monotonic()
        self._step = -1

    def poll(self, step: int) -> bool:
        """Returns whether the run ends early, as far as is known; asks every three seconds.

        And at once if the global step does not move: replicas whose chief has exited have few
        tokens left before they would wait without end.
        """
        now, before = time.monotonic(), self._step
        self._step = step
        if self._server.runtime != "legacy" or (now - self._polled < _POLL_SECS and step != before):
            return False
        self._polled = now
        with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
            return bool(key_value.read(*_place(self._server), _ENDS_EARLY))
        return False


def _place(server: compat.Server) -> tuple[str, Task]:
    """Returns the server that holds the entries: the first parameter server's, else the chief's."""
    task = chief_task(server.cluster)
    if "ps" in server.cluster.jobs:
        task = Task("ps", server.cluster.task_indices("ps")[0])
    return "grpc://" + server.cluster.address_of(task), task
