"""Verifies that all tasks that train have the same data, model and batch size."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any, Iterable

import compat
from compat import UserError
from compat.cluster.roles import chief_task
from compat.cluster.spec import Task
from compat.liveness import key_value

_NAME = "trains_on"
_POLL_SECS = 0.1


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
    target, task = _place(server)
    key_value.write(target, task, _NAME, json.dumps(mine))


def check(server: compat.Server, mine: dict[str, str], patience: float) -> None:
    """Compares the fingerprint of another task with the chief's.

    Args:
      server: of this task.
      mine: its fingerprint.
      patience: seconds to wait for the chief's.

    Raises:
      UserError: they differ; the message names what, and both values.
    """
    target, task = _place(server)
    deadline = time.monotonic() + patience
    while True:
        found = key_value.read(target, task, _NAME)
        if found is not None or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_SECS)
    if found is None:
        return  # The chief is lost, which is reported where it is needed.
    chiefs: dict[str, str] = json.loads(found)
    for name, value in mine.items():
        if chiefs.get(name) != value:
            raise UserError(
                f"{name} is {value} in {server.task.name} and {chiefs.get(name)} in the chief; "
                "start all tasks with the same program, settings and data"
            )


def _place(server: compat.Server) -> tuple[str, Task]:
    """Returns the server that holds the text: the first parameter server's, else the chief's."""
    task = chief_task(server.cluster)
    if "ps" in server.cluster.jobs:
        task = Task("ps", server.cluster.task_indices("ps")[0])
    return "grpc://" + server.cluster.task_address(task.job, task.index), task
