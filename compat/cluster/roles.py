"""Assigns each task of a cluster its role, with a coordinator or without.

Jobs may have any name. "ps" stores variables; "chief" or "master" initializes, saves and reports.
All other jobs are workers. Without a chief, the first task of the job "learner", "trainer" or
"worker", in this order, or of the first job by name, is the chief.
"""

from __future__ import annotations

import enum

from compat.cluster.address import split_address
from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import UserError

_CHIEFS = ("chief", "master")
_STAND_INS = (*_CHIEFS, "learner", "trainer", "worker")


class Role(enum.Enum):
    """The role of one task in a run; the value describes it."""

    SERVE = "store variables or run the operations of others, until training has ended"
    TRAIN = "hand out its own updates"
    TRAIN_AS_CHIEF = "hand out its own updates; initialize, save and report"
    COORDINATE = "hand out the updates of all workers; initialize, save and report"
    SERVE_AND_COORDINATE = "coordinate, and compute as one of the workers, in one process"
    EVALUATE = "evaluate the checkpoints that the chief writes"


def chief_task(cluster: ClusterSpec) -> Task:
    """Returns the task that initializes, saves and reports."""
    jobs = [job for job in cluster.jobs if job != "ps"]
    if not jobs:
        raise _lacks("worker", cluster)
    job = next((name for name in _STAND_INS if name in jobs), jobs[0])
    return Task(job, cluster.task_indices(job)[0])


def is_local(cluster: ClusterSpec) -> bool:
    """Whether a cluster is one task of a job such as "local", which needs no other task."""
    names = {"ps", "worker", *_CHIEFS}
    return len(all_tasks(cluster)) == 1 and not names & set(cluster.jobs)


def is_synchronous(cluster: ClusterSpec, has_coordinator: bool) -> bool:
    """Whether all workers make each update together: with a coordinator, but without ps."""
    alone = "ps" in cluster.jobs or is_local(cluster)
    return has_coordinator and not alone and bool(_worker_jobs(cluster))


def strategy_names(cluster: ClusterSpec, task: Task) -> tuple[ClusterSpec, Task]:
    """Returns cluster and task as TensorFlow 2's strategies call them: chief, ps and worker."""
    if is_local(cluster):
        return cluster, task
    workers = dict.fromkeys(_worker_jobs(cluster), "worker")
    names = {"ps": "ps", "chief": "chief", "master": "chief", **workers}
    jobs = {names[job]: tasks for job, tasks in cluster.as_dict().items()}
    return ClusterSpec(jobs), Task(names[task.job], task.index)


def role(task: Task, cluster: ClusterSpec, has_coordinator: bool) -> Role:
    """Returns the role of `task` in `cluster`; an evaluator only reads, and is in no cluster."""
    if task.job == "evaluator":
        return Role.EVALUATE
    _check_cluster(cluster, has_coordinator)
    cluster.address_of(task)
    if task.job == "ps":
        return Role.SERVE
    chief = task == chief_task(cluster)
    if not has_coordinator or is_synchronous(cluster, has_coordinator) or is_local(cluster):
        return Role.TRAIN_AS_CHIEF if chief else Role.TRAIN
    coordinates = Role.COORDINATE if task.job in _CHIEFS else Role.SERVE_AND_COORDINATE
    return coordinates if chief else Role.SERVE


def trainers(cluster: ClusterSpec, has_coordinator: bool) -> list[Task]:
    """Returns the training tasks, the chief first: all but ps, or only a coordinating chief."""
    tasks = [
        task
        for task in all_tasks(cluster)
        if role(task, cluster, has_coordinator) is not Role.SERVE
    ]
    return sorted(tasks, key=lambda task: task != chief_task(cluster))


def num_workers(cluster: ClusterSpec, has_coordinator: bool) -> int:
    """Returns how many tasks compute updates; a chief that coordinates does not."""
    _check_cluster(cluster, has_coordinator)
    coordinates = has_coordinator and not is_synchronous(cluster, has_coordinator)
    idle = ("ps", *_CHIEFS) if coordinates else ("ps",)
    return sum(cluster.num_tasks(job) for job in cluster.jobs if job not in idle)


def _worker_jobs(cluster: ClusterSpec) -> list[str]:
    return [job for job in cluster.jobs if job != "ps" and job not in _CHIEFS]


def _check_cluster(cluster: ClusterSpec, has_coordinator: bool) -> None:
    for job in cluster.jobs:
        if not cluster.num_tasks(job):
            raise UserError(f"job {job!r} has no task; give it a host:port, or leave the job out")
        if job == "evaluator":
            raise UserError("an evaluator is in no cluster; leave the job 'evaluator' out")
    tasks, workers = all_tasks(cluster), _worker_jobs(cluster)
    for task in tasks if len(tasks) > 1 else []:
        if split_address(cluster.address_of(task), any_port=True)[1] == 0:
            raise UserError(
                f"port 0 of {cluster.describe(task)} lets the system choose one, which the other "
                "tasks cannot know; use one from 1 to 65535"
            )
    chiefs = sum(task.job in _CHIEFS for task in tasks)
    if chiefs > 1:
        raise UserError(
            f"the cluster has {chiefs} chief tasks, but one is needed; make workers of the rest"
        )
    # Jobs with other names, such as learner and actor, may store the variables themselves, and so
    # does a single worker.
    needs_ps = has_coordinator or ("worker" in workers and len(tasks) > 1) or not workers
    does_without = is_synchronous(cluster, has_coordinator) or is_local(cluster) or not needs_ps
    if "ps" not in cluster.jobs and not does_without:
        raise _lacks("ps", cluster)
    if not workers:
        raise _lacks("worker", cluster)
    if has_coordinator and len(workers) > 1:
        raise UserError(
            f"the cluster has the jobs {', '.join(workers)}, but the modern runtime has one job of "
            "workers; make one of them, or use the legacy runtime"
        )


def _lacks(job: str, cluster: ClusterSpec) -> UserError:
    present = ", ".join(cluster.jobs) or "no job at all"
    return UserError(f"the cluster has {present} and lacks {job}; add at least one {job} task")
