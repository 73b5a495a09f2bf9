"""Records when each task of a local cluster started and ended, in the log folder of its run.

`tasks.jsonl` has a line for each event, in the order of time, over all launches:

    {"time": 1700000000.0, "task": "worker 1", "event": "start"}
    {"time": 1700000042.5, "task": "worker 1", "event": "end", "code": 137}
    {"time": 1700000060.0, "task": "worker 0", "event": "updates", "count": 250, "staleness": 0.9,
     "examples": 25000}

Times are in seconds since 1970. `code` is the exit code, 128 + n if signal n ended the task. An
event "updates" is written at the end, by each asynchronous worker or by the coordinator for all:
`count` is the number of updates since the process was started, `staleness` their mean staleness,
and `examples` the number of examples that the worker has used in the whole run.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, Iterator

from compat.checkpoint import folder_lock
from compat.tracking.files import appending

FILE = "tasks.jsonl"
_LATEST = 1e11  # In the year 5138.
Event = Dict[str, Any]


class TaskRecord:
    """Receives the starts and ends of tasks, and adds them to the file of a log folder.

    They are held in memory until the chief has written to the folder, which it does only if it has
    something to train on.
    """

    def __init__(self, logdir: str, clock: Callable[[], float] = time.time) -> None:
        self._logdir = logdir
        self._clock = clock
        self._kept: list[Event] = []

    def __call__(self, task: str, code: int | None) -> None:
        """Receives the start of a task, or its end if `code`, the exit code, is given."""
        end = {"event": "start"} if code is None else {"event": "end", "code": code}
        self._kept.append({"time": self._clock(), "task": task, **end})
        if self._is_begun() and append(self._logdir, self._kept):
            self._kept = []

    def _is_begun(self) -> bool:
        try:
            return any(name != folder_lock.FILE for name in os.listdir(self._logdir))
        except OSError:
            return False


def append(logdir: str, events: list[Event]) -> bool:
    """Appends events to the file in one write; returns False if that fails, without an error."""
    text = "".join(json.dumps(event) + "\n" for event in events)
    try:
        with appending(os.path.join(logdir, FILE)) as file:
            file.write(text.encode())
    except OSError:
        return False
    return True


def read(logdir: str) -> Iterator[Event]:
    """Yields the events in a log folder; skips lines that are not valid, and a missing file."""
    try:
        with open(os.path.join(logdir, FILE), "rb") as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line.decode())
            event["time"], event["task"] = float(event["time"]), str(event["task"])
            if event["event"] == "updates":
                event["count"] = int(event["count"])
                event["staleness"] = float(event["staleness"])
                event["examples"] = int(event.get("examples", 0))
            if 0 <= event["time"] < _LATEST and isinstance(event["event"], str):
                yield event
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            continue
