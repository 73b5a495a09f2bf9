"""Compares the task that a cluster manager assigns to this process with the flags."""

from __future__ import annotations

import re
from typing import Mapping

from compat.cluster.environment import cluster_from_tf_config
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError

# What deploy/slurm.sbatch exports. Only then do Slurm's numbers mean tasks of our cluster: in any
# other job they may count whatever the user has started.
SLURM_ORDER = "SLURM_TASKS_ARE"
_PS_THEN_WORKERS = "ps,worker"


def check_agreement(cluster: ClusterSpec, task: Task, environment: Mapping[str, str]) -> None:
    """Raises `UserError` if TF_CONFIG or Slurm's variables contradict the cluster or the task."""
    if environment.get("TF_CONFIG"):
        _check_tf_config(cluster, task, environment["TF_CONFIG"])
    if SLURM_ORDER in environment and task.job != "evaluator":  # That is not one of its tasks.
        _check_slurm(cluster, task, environment)


def _check_tf_config(cluster: ClusterSpec, task: Task, text: str) -> None:
    managed, own = cluster_from_tf_config(text)
    if own != task:
        raise UserError(
            f"--job_name={task.job} --task_index={task.index} contradicts TF_CONFIG, whose task is "
            f"{own.job} {own.index}; leave out the flags, or unset TF_CONFIG"
        )
    if task.job == "evaluator":
        return  # It is in no cluster.
    for job in sorted({*cluster.jobs, *managed.jobs}):
        flag, variable = (_hosts(side, job) for side in (cluster, managed))
        if flag is None:  # Only ps and worker have flags.
            raise UserError(
                f"there is no {job} in the flags, and {variable} in TF_CONFIG; "
                "leave out the flags, or unset TF_CONFIG"
            )
        if flag != variable:
            raise UserError(
                f"--{job}_hosts={flag} contradicts TF_CONFIG, which has {variable or 'none'}; "
                "leave out the flags, or unset TF_CONFIG"
            )


def _hosts(cluster: ClusterSpec, job: str) -> str | None:
    if job not in cluster.jobs:
        return None
    return ",".join(cluster.task_address(job, i) for i in cluster.task_indices(job))


def _check_slurm(cluster: ClusterSpec, task: Task, environment: Mapping[str, str]) -> None:
    order = environment[SLURM_ORDER]
    if order != _PS_THEN_WORKERS:
        raise UserError(f"{SLURM_ORDER}={order} is unknown; use {_PS_THEN_WORKERS}, or unset it")
    counts = {job: cluster.num_tasks(job) for job in ("ps", "worker") if job in cluster.jobs}
    tasks = [Task(job, i) for job in counts for i in cluster.task_indices(job)]
    count, number = _number(environment, "SLURM_NTASKS"), _number(environment, "SLURM_PROCID")
    if count != len(tasks):
        raise UserError(
            f"SLURM_NTASKS={count} contradicts --ps_hosts and --worker_hosts, which have "
            f"{counts.get('ps', 0)} and {counts.get('worker', 0)}; "
            f"start as many tasks as there are hosts: srun --ntasks={len(tasks)}"
        )
    if not 0 <= number < count or tasks[number] != task:
        expected = tasks.index(task) if task in tasks else f"0 to {count - 1}"
        raise UserError(
            f"SLURM_PROCID={number} contradicts --job_name={task.job} --task_index={task.index}, "
            f"which is task {expected}; count parameter servers first, then workers"
        )


def _number(environment: Mapping[str, str], name: str) -> int:
    value = environment.get(name, "")
    if not re.fullmatch("[0-9]{1,9}", value):  # Not `isdigit`, which takes "²" as well.
        raise UserError(f"{name}={value!r} is no number; start the tasks with srun")
    return int(value)
