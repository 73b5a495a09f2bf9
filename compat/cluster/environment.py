"""Reads the cluster and the task from flags or TF_CONFIG, and checks that the sources agree."""

from __future__ import annotations

import json
import re
import reprlib
from typing import Any, Mapping, Sequence

from compat.cluster.spec import ClusterSpec, Task, checked_cluster
from compat.errors import UserError

_TF_CONFIG_EXAMPLE = (
    '{"cluster": {"ps": ["h0:2222"], "worker": ["h1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
_JSON_NAMES = {dict: "an object", int: "a whole number", str: "text"}
_TASK_TYPES = ("chief", "evaluator", "master", "ps", "worker")
_LEAVE_OUT = "leave out the flags, or unset TF_CONFIG"
# Variables that deploy/slurm.sbatch exports. Only with them do Slurm's numbers stand for tasks of
# the cluster; in other jobs they may count other processes.
_SLURM_ORDER = "SLURM_TASKS_ARE"
_PS_THEN_WORKERS = "ps,worker"


def cluster_from_hosts(
    ps_hosts: str | Sequence[str] | None, worker_hosts: str | Sequence[str]
) -> ClusterSpec:
    """Returns the cluster of the flags --ps_hosts and --worker_hosts; None means no such job."""
    jobs = {}
    for job, hosts in (("ps", ps_hosts), ("worker", worker_hosts)):
        if hosts is None:
            continue
        if not hosts or isinstance(hosts, str) and not hosts.strip():
            raise UserError(f"--{job}_hosts is empty; write --{job}_hosts=host:port,host:port")
        jobs[job] = [h.strip() for h in hosts.split(",")] if isinstance(hosts, str) else list(hosts)
    return checked_cluster(jobs)


def parse_cluster_spec(text: str) -> ClusterSpec:
    """Returns the cluster in the flag `--cluster_spec` of TensorFlow's old server.

    The format is "worker|host:port;host:port,ps|host:port".
    """
    jobs: dict[str, list[str]] = {}
    for part in text.split(","):
        job, bar, hosts = part.strip().partition("|")
        if not bar:
            raise UserError(f"{part!r} in cluster spec {text!r} has no '|'; write worker|host:port")
        if job in jobs:
            raise UserError(f"job {job!r} is twice in cluster spec {text!r}; join its hosts by ';'")
        jobs[job] = [host.strip() for host in hosts.split(";")]
    return checked_cluster(jobs)


def cluster_from_tf_config(text: str) -> tuple[ClusterSpec, Task]:
    """Returns the cluster and this process's task of the environment variable TF_CONFIG.

    A job "master" becomes "chief". An "evaluator" is removed from the cluster, because a
    coordinator would wait for it for ever; it may still be the task.
    """
    try:
        return _parse_tf_config(text)
    except UserError as error:
        raise UserError(f"TF_CONFIG: {error}; a right one is {_TF_CONFIG_EXAMPLE}") from None


def tf_config(hosts: Mapping[str, Sequence[str]], task: Task) -> str:
    """Returns the TF_CONFIG of a task; `hosts` has the addresses of each job."""
    return json.dumps({"cluster": hosts, "task": {"type": task.job, "index": task.index}})


def _parse_tf_config(text: str) -> tuple[ClusterSpec, Task]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply.
        raise UserError(f"{reprlib.repr(text)} is not valid JSON ({error})") from None
    jobs = _member(config, "cluster", dict)
    place = _member(config, "task", dict)
    job, index = _member(place, "type", str), _member(place, "index", int)
    if job not in _TASK_TYPES:
        raise UserError(f"task type {job!r} is unknown, expected one of {', '.join(_TASK_TYPES)}")
    if "master" in jobs and "chief" in jobs:
        raise UserError("the cluster has both a master and a chief, expected one of them")
    if "master" in jobs:
        jobs["chief"] = jobs.pop("master")
    task = Task("chief" if job == "master" else job, index)
    cluster = checked_cluster(jobs)
    if task.job in cluster.jobs or task.job != "evaluator":
        cluster.address_of(task)
    elif task.index < 0:
        raise UserError(f"task index {task.index} is negative, expected 0 or more")
    jobs.pop("evaluator", None)
    return ClusterSpec(jobs), task


def _member(mapping: Any, key: str, kind: type) -> Any:
    """Returns the value of `key`, of exactly the type `kind`, since `True` is also an `int`."""
    if not isinstance(mapping, Mapping):
        raise UserError(f"{reprlib.repr(mapping)} is not an object with a key {key!r}")
    if key not in mapping:
        raise UserError(f"the key {key!r} is missing in {reprlib.repr(mapping)}")
    if type(mapping[key]) is not kind:
        raise UserError(f"{key!r} is {reprlib.repr(mapping[key])}, expected {_JSON_NAMES[kind]}")
    return mapping[key]


def check_agreement(cluster: ClusterSpec, task: Task, environment: Mapping[str, str]) -> None:
    """Raises `UserError` if TF_CONFIG or Slurm's variables contradict the cluster or the task."""
    if environment.get("TF_CONFIG"):
        _check_tf_config(cluster, task, environment["TF_CONFIG"])
    if _SLURM_ORDER in environment and task.job != "evaluator":  # Slurm counts no evaluator.
        _check_slurm(cluster, task, environment)


def _check_tf_config(cluster: ClusterSpec, task: Task, text: str) -> None:
    managed, own_task = cluster_from_tf_config(text)
    if own_task != task:
        raise UserError(
            f"--job_name={task.job} --task_index={task.index} contradicts TF_CONFIG, whose task is "
            f"{own_task.job} {own_task.index}; {_LEAVE_OUT}"
        )
    if task.job == "evaluator":
        return  # An evaluator is in no cluster.
    for job in sorted({*cluster.jobs, *managed.jobs}):
        flag, variable = (_hosts(side, job) for side in (cluster, managed))
        what = f"--{job}_hosts={flag} contradicts TF_CONFIG, which has {variable or 'none'}"
        if flag is None:  # Only ps and worker have flags.
            what = f"there is no {job} in the flags, and {variable} in TF_CONFIG"
        if flag != variable:
            raise UserError(f"{what}; {_LEAVE_OUT}")


def _hosts(cluster: ClusterSpec, job: str) -> str | None:
    if job not in cluster.jobs:
        return None
    return ",".join(cluster.task_address(job, i) for i in cluster.task_indices(job))


def _check_slurm(cluster: ClusterSpec, task: Task, environment: Mapping[str, str]) -> None:
    order = environment[_SLURM_ORDER]
    if order != _PS_THEN_WORKERS:
        raise UserError(f"{_SLURM_ORDER}={order} is unknown; use {_PS_THEN_WORKERS}, or unset it")
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
    if not re.fullmatch("[0-9]{1,9}", value):  # `isdigit` also accepts "²".
        raise UserError(f"{name}={value!r} is not a number; start the tasks with srun")
    return int(value)
