"""Specifies a cluster: its jobs, their tasks and the address of each task."""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from typing import Any, Mapping

from compat.cluster.address import split_address
from compat.errors import UserError


@dataclass(frozen=True)
class Task:
    """One process of a cluster: number `index`, from zero, of the processes of `job`."""

    job: str
    index: int

    @property
    def name(self) -> str:
        """The task as TensorFlow writes it: "/job:worker/task:0"."""
        return f"/job:{self.job}/task:{self.index}"


class ClusterSpec:
    """`tf.train.ClusterSpec` without TensorFlow, checked when made and never changed afterwards.

    Other than there, a job has tasks, each task a well-formed address, no two the same one, and
    what is wrong with a cluster or with a question to it is a `UserError`.
    """

    def __init__(self, jobs: Any) -> None:
        """Describes a cluster.

        Args:
          jobs: a mapping from job name to a list of "host:port" or, where task indices have gaps,
            to a mapping from index to "host:port"; or another cluster: anything with `as_dict()`.

        Raises:
          UserError: a name, an index or an address is malformed, a job empty or an address taken.
        """
        jobs = jobs.as_dict() if hasattr(jobs, "as_dict") else jobs
        if not isinstance(jobs, Mapping):
            shown = reprlib.repr(jobs)
            raise UserError(f"cluster {shown} is no mapping; write {{'ps': ['host:port'], ...}}")
        self._jobs = {job: _checked_tasks(job, addresses) for job, addresses in jobs.items()}
        taken: dict[tuple[str, int], Task] = {}
        for task in all_tasks(self):
            address = self._jobs[task.job][task.index]
            host, port = split_address(address)
            other = taken.setdefault((host.lower(), port), task)
            if other != task:
                raise UserError(
                    f"address {address!r} is given to both {other.name} and {task.name}; "
                    "give each task a port of its own"
                )

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Returns a copy, job to list of addresses, or to index -> address if there are gaps."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, sorted."""
        return sorted(self._jobs)

    def num_tasks(self, job: str) -> int:
        """Returns how many tasks `job` has; raises `UserError` for an unknown job."""
        return len(self._tasks(job))

    def task_indices(self, job: str) -> list[int]:
        """Returns the indices of `job`, ascending; raises `UserError` for an unknown job."""
        return list(self._tasks(job))

    def task_address(self, job: str, index: int) -> str:
        """Returns the "host:port" of a task; raises `UserError` for an unknown job or index."""
        tasks = self._tasks(job)
        if isinstance(index, bool) or index not in tasks:
            valid = ", ".join(map(str, tasks))
            raise UserError(
                f"task index {index!r} of job {job!r} is not in the cluster; use {valid}"
            )
        return tasks[index]

    def job_tasks(self, job: str) -> list[str | None]:
        """Returns the addresses of `job` by index, None at gaps; `UserError` for an unknown job."""
        tasks = self._tasks(job)
        return [tasks.get(index) for index in range(max(tasks) + 1)]

    def _tasks(self, job: str) -> dict[int, str]:
        if job not in self._jobs:
            valid = ", ".join(self.jobs) or "no job at all"
            raise UserError(
                f"job {job!r} is not in the cluster, which has {valid}; correct the name"
            )
        return self._jobs[job]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == other._jobs if isinstance(other, ClusterSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple((job, tuple(self._jobs[job].items())) for job in self.jobs))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


def _checked_tasks(job: object, addresses: Any) -> dict[int, str]:
    """Returns index -> address of one job, ascending, or raises `UserError`."""
    if not isinstance(job, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", job):
        raise UserError(f"job name {job!r} is malformed; use letters, digits and _, as in 'worker'")
    if isinstance(addresses, (list, tuple)):
        addresses = dict(enumerate(addresses))
    if not isinstance(addresses, Mapping):
        shown = reprlib.repr(addresses)
        raise UserError(f"job {job!r} is {shown}; expected a list as in ['localhost:2222']")
    if not addresses:
        raise UserError(f"job {job!r} has no task; give it a host:port, or leave the job out")
    for index, address in addresses.items():
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise UserError(f"task index {index!r} of job {job!r} is malformed; use 0, 1, 2, ...")
        try:
            split_address(address)
        except UserError as error:
            raise UserError(f"{Task(job, index).name}: {error}") from None
    return dict(sorted(addresses.items()))


def all_tasks(cluster: ClusterSpec) -> list[Task]:
    """Returns every task, by job name and index: a chief before ps before workers."""
    return [Task(job, index) for job in cluster.jobs for index in cluster.task_indices(job)]
