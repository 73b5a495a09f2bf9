"""Verifies that all tasks that train have the same data, model and batch size."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any, Iterable

import compat
from compat import UserError
from compat.liveness import key_value
from experiments.evaluation.early_stopping import entry_place

_ENTRY = "trains_on"
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
    key_value.write(*entry_place(server), _ENTRY, json.dumps(mine))


def check(server: compat.Server, mine: dict[str, str], patience: float) -> None:
    """Raises a `UserError` if a task's fingerprint is not the chief's, read within `patience` s."""
    deadline = time.monotonic() + patience
    found = key_value.read(*entry_place(server), _ENTRY)
    while found is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECS)
        found = key_value.read(*entry_place(server), _ENTRY)
    if found is None:
        return  # The chief is lost, which is reported where it is needed.
    chiefs: dict[str, str] = json.loads(found)
    for name, value in mine.items():
        if chiefs.get(name) != value:
            raise UserError(
                f"{name} is {value} in {server.task.name} and {chiefs.get(name)} in the chief; "
                "start all tasks with the same program, settings and data"
            )
