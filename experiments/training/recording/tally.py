"""Counts the batches and examples that each worker has used, and the updates that it has made.

Batches and examples count from the beginning of the run, updates from the start of the process.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Sequence, Tuple

import compat
from experiments.launching import task_record
from experiments.settings.files import FILE as SETTINGS

# Batches and examples that each worker has used since the run began, by its name.
Seen = Dict[str, Tuple[int, int]]


@dataclass
class _Count:
    updates: int = 0  # Since this process was started.
    calls: int = 0
    staleness: float = 0.0  # The sum of the staleness of the calls.
    batches: int = 0  # In the whole run.
    examples: int = 0
    before: int = 0  # Examples that were used before the worker was last restarted.
    counted: float = 0.0  # The last `examples_seen` of the worker, which a restart sets to 0.


@dataclass
class Tally:
    """Counts the updates that a session reports; a coordinator's session reports all workers'.

    Attributes:
      workers: the names of all workers that have a shard of the data, in the order of the shards.
      own: the name of the worker that this process is; None in a coordinator.
      batch_size: the number of examples in a batch, for steps that do not return `examples_seen`.
    """

    workers: Sequence[str]
    own: str | None
    batch_size: int
    _found: dict[str, _Count] = field(default_factory=dict)

    def add(self, worker: int | None, number: int, values: Mapping[str, Any]) -> None:
        """Counts updates that a worker has made; `values` are the values of the last of them.

        Updates of an unknown worker are counted under the name "".
        """
        name = self.own or ("" if worker is None else self.workers[worker])
        found = self._found.setdefault(name, _Count())
        found.updates += number
        found.batches += number
        found.calls += 1
        found.staleness += values.get("staleness", 0.0)
        counted = values.get("examples_seen")
        if counted is None:
            found.examples += number * self.batch_size
            return
        if counted < found.counted:  # The worker was restarted.
            found.before += int(found.counted)
        found.counted = counted
        found.examples = found.before + int(counted)

    def resume(self, seen: Seen) -> None:
        """Sets how much data workers had used before this process was started."""
        for name, (batches, examples) in seen.items():
            if name != self.own and self.own is not None:
                self.take(name, (batches, examples))
                continue
            count = self._found.setdefault(name, _Count())
            count.batches, count.examples, count.before = batches, examples, examples

    def take(self, name: str, seen: tuple[int, int] | None) -> None:
        """Sets how much data another worker has used, unless `seen` is None."""
        if seen is not None:
            self._found.setdefault(name, _Count()).batches = seen[0]
            self._found[name].examples = seen[1]

    def batches(self, worker: int) -> int:
        """Returns how many batches a worker has used, as far as this process knows."""
        return self._found.get(self.workers[worker], _Count()).batches

    def seen(self) -> Seen:
        """Returns how much data each worker has used, by name; "" stands for unknown workers."""
        return {name: (c.batches, c.examples) for name, c in sorted(self._found.items())}

    def examples(self) -> dict[str, float]:
        """Returns how many examples were used, in total and by worker, by their curves' names."""
        seen = {name: float(examples) for name, (_, examples) in self.seen().items()}
        by_worker = {f"examples_seen/{n.replace(' ', '_')}": v for n, v in seen.items() if n}
        several = by_worker if len(seen) > 1 else {}
        return {"examples_seen": sum(seen.values()), **several}

    def record(self, logdir: str) -> None:
        """Adds the counts of this process to `tasks.jsonl`, if it can see the run's log folder.

        This is called at the end, so a task that is killed records nothing.
        """
        if not os.path.isfile(os.path.join(logdir, SETTINGS)):
            return
        now = time.time()
        events = [
            {
                "time": now,
                "task": task,
                "event": "updates",
                "count": count.updates,
                "staleness": count.staleness / count.calls,
                "examples": count.examples,
            }
            for task, count in sorted(self._found.items())
            if task and count.calls
        ]
        task_record.append(logdir, events)


def tally_of(server: compat.Server | None, batch_size: int) -> Tally:
    """Returns a new tally for this process; `server` is None if it trains alone."""
    if server is None:
        return Tally(["worker 0"], "worker 0", batch_size)
    workers = [f"{task.job} {task.index}" for task in server.shards]
    coordinates = server.has_coordinator and not server.synchronous
    return Tally(workers, None if coordinates else workers[server.trainer_index], batch_size)
