"""Counts the updates of each worker, and how stale they were, for the record of a run."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping

import compat
from experiments.launching import task_record
from experiments.settings.files import FILE as SETTINGS


class Tally:
    """Receives updates as a session makes them; a coordinator's are those of all workers.

    Those of a task that is killed are not recorded.
    """

    def __init__(self, server: compat.Server) -> None:
        self._own = f"{server.task.job} {server.task.index}"
        self._coordinates = server.runtime == "modern"
        self._found: dict[str, list[float]] = {}  # Updates, calls, and the sum of their staleness.

    def add(self, worker: int | None, number: int, values: Mapping[str, Any]) -> None:
        """Takes updates that a worker has made; `values` are those of the last."""
        if worker is None and self._coordinates:
            return  # TensorFlow does not show whose they are.
        name = self._own if worker is None else f"worker {worker}"
        found = self._found.setdefault(name, [0, 0, 0.0])
        found[0] += number
        found[1] += 1
        found[2] += values.get("staleness", 0.0)

    def record(self, logdir: str) -> None:
        """Adds the numbers to the record of the run, where this task sees its log folder."""
        if not os.path.isfile(os.path.join(logdir, SETTINGS)):
            return
        now = time.time()
        events = [
            {"time": now, "task": task, "event": "updates", "count": n, "staleness": total / calls}
            for task, (n, calls, total) in sorted(self._found.items())
        ]
        task_record.append(logdir, events)
