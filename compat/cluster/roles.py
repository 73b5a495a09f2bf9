"""Who does what in a cluster, on either runtime."""

from __future__ import annotations

import enum

from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import UserError

RUNTIMES = ("legacy", "modern")


class Role(enum.Enum):
    """What one task does from its start to its end."""

    SERVE = "hold variables or compute what others hand out, until told that training is over"
    TRAIN = "hand out its own updates"
    TRAIN_AS_CHIEF = "hand out its own updates; initialise, save and report"
    COORDINATE = "hand out the updates of all workers; initialise, save and report"
    SERVE_AND_COORDINATE = "coordinate, and compute as one of the workers, in one process"
    EVALUATE = "measure the checkpoints that the chief writes"


def chief_task(cluster: ClusterSpec) -> Task:
    """Returns the task that initialises, saves and reports: the chief, else the first worker."""
    job = "chief" if "chief" in cluster.jobs else "worker"
    return Task(job, cluster.task_indices(job)[0])


def is_synchronous(cluster: ClusterSpec, runtime: str) -> bool:
    """Whether all workers make each update together, each on weights of its own: without any ps."""
    return runtime == "modern" and "ps" not in cluster.jobs and "worker" in cluster.jobs


def role(task: Task, cluster: ClusterSpec, runtime: str) -> Role:
    """Returns what `task` does in `cluster`.

    An evaluator reads checkpoints only, so it is asked for no place in the cluster, nor for one.

    Raises:
      UserError: `runtime` is unknown, the cluster lacks ps or workers or has jobs that nobody
        knows or several chiefs, or `task` is not in it.
    """
    _check_runtime(runtime)
    if task.job == "evaluator":
        return Role.EVALUATE
    _check_cluster(cluster, runtime)
    cluster.task_address(task.job, task.index)
    if task.job == "ps":
        return Role.SERVE
    if runtime == "legacy" or is_synchronous(cluster, runtime):
        return Role.TRAIN_AS_CHIEF if task == chief_task(cluster) else Role.TRAIN
    if task != chief_task(cluster):
        return Role.SERVE
    return Role.COORDINATE if task.job == "chief" else Role.SERVE_AND_COORDINATE


def trainers(cluster: ClusterSpec, runtime: str) -> list[Task]:
    """Returns the tasks that hand out updates: all but ps, or just the coordinating one.

    Raises:
      UserError: as `role`.
    """
    return [task for task in all_tasks(cluster) if role(task, cluster, runtime) is not Role.SERVE]


def num_workers(cluster: ClusterSpec, runtime: str) -> int:
    """Returns how many tasks compute updates; a chief that coordinates does not.

    Raises:
      UserError: as `role`.
    """
    _check_runtime(runtime)
    _check_cluster(cluster, runtime)
    chiefs = cluster.num_tasks("chief") if "chief" in cluster.jobs else 0
    computes = runtime == "legacy" or is_synchronous(cluster, runtime)
    return cluster.num_tasks("worker") + (chiefs if computes else 0)


def _check_runtime(runtime: str) -> None:
    if runtime not in RUNTIMES:
        raise UserError(f"runtime {runtime!r} is unknown; use one of {', '.join(RUNTIMES)}")


def _check_cluster(cluster: ClusterSpec, runtime: str) -> None:
    for job in cluster.jobs:
        if job not in ("chief", "ps", "worker"):
            raise UserError(f"job {job!r} of the cluster is unknown; use chief, ps and worker")
    for job in ("ps", "worker"):
        if job not in cluster.jobs and not is_synchronous(cluster, runtime):
            present = ", ".join(cluster.jobs) or "no job at all"
            raise UserError(
                f"the cluster has {present} and lacks {job}; add at least one {job} task"
            )
    if "chief" in cluster.jobs and cluster.num_tasks("chief") > 1:
        chiefs = cluster.num_tasks("chief")
        raise UserError(
            f"the cluster has {chiefs} chief tasks, but one is needed; make workers of the rest"
        )
