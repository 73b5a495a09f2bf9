"""Prints the command that starts a missing task, for a cluster that is started from terminals."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Callable, Sequence

from compat.cluster.spec import ClusterSpec, Task, all_tasks
from experiments.launching.launcher import Program

_WAITING = re.compile(r"waiting for \S+ at (\S+):")


def command(program: Program, argv: Sequence[str], task: Task) -> str:
    """Returns the command line of this process, changed to start another task."""
    python = [sys.executable, *([str(program)] if isinstance(program, Path) else ["-m", program])]
    words, rest = [], iter(argv)
    for word in rest:
        name, equals, _ = word.lstrip("-").partition("=")
        if name not in ("job_name", "task_index") or not word.startswith("-"):
            words.append(word)
        elif not equals:
            next(rest, None)
    place = [f"--job_name={task.job}", f"--task_index={task.index}"]
    return " ".join(map(shlex.quote, [*python, *words, *place]))


def announce(
    cluster: ClusterSpec, task: Task, program: Program, argv: Sequence[str]
) -> Callable[[str], None]:
    """Prints that no hosts are named, and the flags that would name them.

    Returns a function that prints a line of a server. The first time that the server waits for a
    missing task, the function also prints the command that starts that task.
    """
    tasks = all_tasks(cluster)
    hosts: dict[str, list[str]] = {}
    for other in tasks:
        hosts.setdefault(other.job, []).append(cluster.address_of(other))
    flags = " ".join(f"--{job}_hosts={','.join(hosts[job])}" for job in sorted(hosts))
    print(
        f"no hosts are named, so the cluster is on this machine, {len(tasks)} tasks, this one is "
        f"{task.job} {task.index}; to name others: {flags}",
        flush=True,
    )
    missing = {cluster.address_of(other): other for other in tasks if other != task}

    def say(line: str) -> None:
        print(line, flush=True)
        found = _WAITING.match(line)
        other = missing.pop(found[1], None) if found else None
        if other is not None:
            shown = command(program, argv, other)
            print(f"start {other.job} {other.index} in another terminal: {shown}", flush=True)

    return say
