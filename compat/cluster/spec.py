"""Specifies a cluster: its jobs, their tasks and the address of each task."""

from __future__ import annotations

import re
import reprlib
import sys
from dataclasses import dataclass
from typing import Any, Mapping

from compat._tensorflow import tf1
from compat.cluster.address import split_address
from compat.errors import UserError, UserTypeError


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
    """`tf.train.ClusterSpec` without TensorFlow, checked when created and immutable.

    TensorFlow's classes accept it as their own. Invalid clusters, and calls with an unknown job or
    index, raise a `UserError`, which is also the `ValueError` or `TypeError` that TensorFlow
    raises. As in TensorFlow, an address is any text; `checked_cluster` refuses invalid addresses.
    """

    def __init__(self, cluster: Any) -> None:
        """Describes a cluster.

        Args:
          cluster: a mapping from job name to a list of "host:port" or, where task indices have
            gaps, to a mapping from index to "host:port"; a `ClusterDef`; or another cluster:
            anything with `as_dict()`.

        Raises:
          UserError: a name or an index is malformed, or an address is not text.
        """
        jobs = cluster.as_dict() if hasattr(cluster, "as_dict") else cluster
        if hasattr(jobs, "SerializeToString"):  # A `ClusterDef`.
            jobs = {job.name: dict(job.tasks) for job in jobs.job}
        if not isinstance(jobs, Mapping):
            shown = reprlib.repr(jobs)
            raise UserTypeError(
                f"cluster {shown} is not a mapping; write {{'ps': ['host:port'], ...}}"
            )
        self._jobs = {job: _checked_tasks(job, addresses) for job, addresses in jobs.items()}

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """TensorFlow's class, once it is loaded, so that TensorFlow's `isinstance` accepts this."""
        loaded: type = tf1.train.ClusterSpec if "tensorflow" in sys.modules else ClusterSpec
        return loaded

    def __reduce__(self) -> Any:
        """Pickles this class, since `__class__` may be TensorFlow's."""
        return type(self), (self.as_dict(),)

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Returns a dict from job to a list of addresses, or a dict by index if there are gaps."""
        return {
            job: list(tasks.values()) if [*tasks] == [*range(len(tasks))] else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """Returns the `ClusterDef` message of TensorFlow, with jobs and tasks in order."""
        jobs = [{"name": job, "tasks": self._jobs[job]} for job in self.jobs]
        return tf1.train.ClusterDef(job=jobs)

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

    def address_of(self, task: Task) -> str:
        """Returns the "host:port" of a task; raises `UserError` if it is not in the cluster."""
        return self.task_address(task.job, task.index)

    def describe(self, task: Task) -> str:
        """Returns a task's name and address for a message: "/job:ps/task:0 at host:port"."""
        return f"{task.name} at {self.address_of(task)}"

    def job_tasks(self, job: str) -> list[str | None]:
        """Returns the addresses of `job` by index, None at gaps; `UserError` for an unknown job."""
        tasks = self._tasks(job)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

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
        try:
            return self._jobs == ClusterSpec(other)._jobs
        except UserError:
            return False

    def __hash__(self) -> int:
        return hash(tuple((job, tuple(self._jobs[job].items())) for job in self.jobs))

    def __repr__(self) -> str:
        jobs = self.as_dict()
        return f"ClusterSpec({ ({job: jobs[job] for job in self.jobs})!r})"


def _checked_tasks(job: object, addresses: Any) -> dict[int, str]:
    """Returns index -> address of one job, ascending, or raises `UserError`."""
    if not isinstance(job, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", job):
        kind = UserError if isinstance(job, str) else UserTypeError
        raise kind(f"job name {job!r} is malformed; use letters, digits and _, as in 'worker'")
    if isinstance(addresses, (list, tuple)):
        addresses = dict(enumerate(addresses))
    if not isinstance(addresses, Mapping):
        shown = reprlib.repr(addresses)
        remedy = f"; give its hosts, as by --{job}_hosts" if addresses is None else ""
        raise UserTypeError(
            f"job {job!r} is {shown}; expected a list as in ['localhost:2222']{remedy}"
        )
    for index, address in addresses.items():
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise UserError(f"task index {index!r} of job {job!r} is malformed; use 0, 1, 2, ...")
        if not isinstance(address, str):
            shown = reprlib.repr(address)
            raise UserTypeError(
                f"{Task(job, index).name}: address {shown} is not text; write 'host:port'"
            )
    return dict(sorted(addresses.items()))


def checked_cluster(jobs: Any) -> ClusterSpec:
    """Returns the `ClusterSpec` of `jobs`, after checking that all addresses are valid.

    Raises:
      UserError: as `ClusterSpec`; or an address is malformed, or given to two tasks.
    """
    cluster = ClusterSpec(jobs)
    taken: dict[tuple[str, int], Task] = {}
    for task in all_tasks(cluster):
        address = cluster.address_of(task)
        try:
            host, port = split_address(address, any_port=True)
        except UserError as error:
            raise UserError(f"{task.name}: {error}") from None
        other = taken.setdefault((host.lower(), port), task)
        if port and other != task:
            raise UserError(
                f"address {address!r} is given to both {other.name} and {task.name}; "
                "give each task a port of its own"
            )
    return cluster


def only_task(cluster: ClusterSpec, job: str | None, index: int | None) -> Task:
    """Returns the task of a job and an index; None means the only job, or its only task."""
    if job is None:
        if len(cluster.jobs) != 1:
            raise UserError(
                f"no job_name was given, and the cluster has {', '.join(cluster.jobs) or 'none'}; "
                "give the job of this task"
            )
        job = cluster.jobs[0]
    if index is None:
        indices = cluster.task_indices(job)
        if len(indices) != 1:
            raise UserError(
                f"no task_index was given, and job {job!r} has {len(indices)} tasks; give the "
                "number of this task"
            )
        index = indices[0]
    return Task(job, index)


def all_tasks(cluster: ClusterSpec) -> list[Task]:
    """Returns every task, sorted by job name and index: first chief, then ps, then worker."""
    return [Task(job, index) for job in cluster.jobs for index in cluster.task_indices(job)]
