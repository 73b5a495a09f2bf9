"""Finds out when the tasks of a run were up, how they ended, and which were launched together.

A task has several lives if it was restarted: a life is the time from one start to its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

from compat.errors import PeerError

_CHIEF = "chief"
_APART_SECS = 60.0  # If no task was up for this time, a new launch begins.
_ENDS = {
    None: "no end recorded",
    0: "finished",
    PeerError.exit_code: "lost another task",
    129: "stopped by a hangup",
    130: "stopped by Ctrl-C",
    143: "stopped",
}


@dataclass(frozen=True)
class Life:
    """The time of a task from one start to its end, in seconds since 1970."""

    task: str  # The name of the task, as "worker 1".
    start: float
    end: float
    code: int | None  # The exit code; None if none was recorded.

    @property
    def outcome(self) -> str:
        """How the life ended, in a few words."""
        if self.code in _ENDS:
            return _ENDS[self.code]
        code = self.code or 0
        return f"killed by signal {code - 128}" if 128 < code < 193 else f"failed with {code}"

    @property
    def kind(self) -> str:
        """The kind of the end, a class of the style sheet: good, stopped, bad or open."""
        if self.code is None:
            return "open"
        return {0: "good", **dict.fromkeys((129, 130, 143), "stopped")}.get(self.code, "bad")


def lives_of(
    events: Sequence[dict[str, Any]], chief: Sequence[tuple[float, float]], code: int | None
) -> list[Life]:
    """Returns the lives of the tasks: for each start of a task, when it was up and how it ended.

    They are those that a launcher recorded; if it recorded none, those of the chief, which are
    found by its event files.

    Args:
      events: what `task_record.read` returned.
      chief: the times of the first and the last event of each event file of the chief.
      code: the exit code of the last chief, None if it is not known.
    """
    if not any(event["event"] == "start" for event in events):
        last = len(chief) - 1
        return [Life(_CHIEF, *span, code if i == last else None) for i, span in enumerate(chief)]
    latest = max([event["time"] for event in events] + [end for _, end in chief])
    found: list[Life] = []
    started: dict[str, float] = {}
    for event in sorted(events, key=lambda event: float(event["time"])):
        task, time = event["task"], event["time"]
        if event["event"] == "start":
            if task in started:  # The launcher was killed, and recorded no end of the task.
                found.append(Life(task, started[task], started[task], None))
            started[task] = time
        elif event["event"] == "end" and task in started:
            code = event.get("code")
            known = code if isinstance(code, int) else None
            found.append(Life(task, started.pop(task), time, known))
    found += [Life(task, start, latest, None) for task, start in started.items()]
    return sorted(found, key=lambda life: life.start)


def launches(lives: Sequence[Life]) -> list[list[Life]]:
    """Groups the lives of tasks by launch, in order of time.

    A life is the time from one start of a task to its end. A life belongs to a new launch if it
    starts more than a minute after all earlier ones have ended.
    """
    found: list[list[Life]] = []
    until = -math.inf
    for life in lives:
        if life.start > until + _APART_SECS:
            found.append([])
        found[-1].append(life)
        until = max(until, life.end)
    return found


def updates(
    events: Sequence[dict[str, Any]], lives: Sequence[Life]
) -> dict[str, tuple[int, float]]:
    """Returns the number of updates and their mean staleness, by task, in the launch of `lives`."""
    start, end = min(life.start for life in lives), max(life.end for life in lives)
    found: dict[str, tuple[int, float]] = {}
    for event in events:
        if event["event"] == "updates" and start <= event["time"] <= end:
            count, stale = event["count"], event["staleness"]
            before, mean = found.get(event["task"], (0, 0.0))
            total = before + count
            found[event["task"]] = total, (before * mean + count * stale) / max(total, 1)
    return found


def names(lives: Sequence[Life]) -> list[str]:
    """Returns the names of tasks, sorted: chief, workers, parameter servers, then all others."""
    jobs = ("chief", "worker", "ps")

    def order(name: str) -> tuple[int, str, int]:
        job, _, index = name.partition(" ")
        place = jobs.index(job) if job in jobs else len(jobs)
        return place, job, int(index) if index.isdigit() else 0

    return sorted({life.task for life in lives}, key=order)
