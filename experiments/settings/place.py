"""The cluster and this process's task in it, from flags or TF_CONFIG."""

from __future__ import annotations

import os
from typing import Sequence

from absl import flags

from compat.cluster.environment import (
    check_agreement,
    cluster_from_hosts,
    cluster_from_tf_config,
)
from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import UserError

EVALUATOR = "evaluator"  # The job of a process that evaluates checkpoints, outside of the cluster.
# An environment variable that the launcher sets for its tasks. They get the launcher's flags, too,
# so that the settings.yaml that one of them writes repeats the whole command.
LAUNCHED = "EXPERIMENTS_LAUNCHED"
_OF_A_TASK = ("job_name", "task_index", "ps_hosts", "worker_hosts")
_OF_A_LAUNCHER = ("num_ps", "num_workers", "max_restarts", "evaluator")
# The cluster of a task without hosts is on this machine, as in 2016: the parameter server has this
# port, and the workers have the next ones.
_PORT = 2222
_MOST_WORKERS = 200
_OF_A_CLUSTER = ("shared_logdir", "run_token", "replicas_to_aggregate")


def place_from_flags(
    values: flags.FlagValues, environment: str | None
) -> tuple[ClusterSpec | None, Task | None]:
    """Returns the cluster and this process's task in it; `environment` is TF_CONFIG, if it is set.

    Both are None if this process trains alone, or starts all tasks of a cluster on this machine.
    The cluster is empty for an evaluator without --worker_hosts.
    """
    cluster, task = _place(values, environment)
    if task is None:
        reason = "has no --job_name beside it; add that, or leave both out for a whole cluster on "
        _refuse(values, ["task_index"], reason + "this machine")
    elif LAUNCHED not in os.environ:
        counted = ("num_workers",) if is_on_default_ports(values, environment) else ()
        reason = "describes a whole cluster that one command starts on this machine, and this "
        reason += f"process is {task.job} {task.index}; leave it out"
        _refuse(values, [name for name in _OF_A_LAUNCHER if name not in counted], reason)
    return cluster, task


def is_on_default_ports(values: flags.FlagValues, environment: str | None) -> bool:
    """Whether a task is given neither hosts nor TF_CONFIG: its cluster is then on this machine."""
    hosts = (values.ps_hosts, values.worker_hosts, environment or None)
    return values.job_name not in (None, "", EVALUATOR) and not any(h is not None for h in hosts)


def _refuse(values: flags.FlagValues, names: Sequence[str], reason: str) -> None:
    """Raises a `UserError` with this reason if the command line has one of the flags `names`."""
    for name in names:
        if name in values and values[name].present:
            raise UserError(f"--{name}={values[name].value} {reason}")


def _place(
    values: flags.FlagValues, environment: str | None
) -> tuple[ClusterSpec | None, Task | None]:
    if values.job_name == EVALUATOR:
        if values.task_index < 0:
            raise UserError(f"--task_index={values.task_index} is negative; give 0 or more")
        task = Task(EVALUATOR, values.task_index)
        if values.worker_hosts is None:
            return ClusterSpec({}), task
        return cluster_from_hosts(values.ps_hosts, values.worker_hosts), task
    if values.strategy == "local":
        names = (*_OF_A_TASK, *_OF_A_LAUNCHER, *_OF_A_CLUSTER)
        _refuse(values, names, "describes a cluster; add --strategy=ps, or leave it out")
        _refuse_cluster(environment)
        return None, None
    needed = ["job_name", "ps_hosts", "worker_hosts"]
    if values.strategy == "multi_worker":
        needed.remove("ps_hosts")
        reason = "is of no use to --strategy=multi_worker, which has no parameter server; leave it "
        _refuse(values, ("ps_hosts", "num_ps"), reason + "out, or use --strategy=ps")
    given = [name for name in needed if values[name].value is not None]
    if not given:
        return _from_tf_config(environment, values.strategy) if environment else (None, None)
    if is_on_default_ports(values, environment):
        return _on_default_ports(values)
    if given == ["job_name"] and values.job_name and environment:
        cluster, task = _from_tf_config(environment, values.strategy)
        index = values.task_index if values["task_index"].present else task.index
        check_agreement(cluster, Task(values.job_name, index), {"TF_CONFIG": environment})
        return cluster, task
    missing = [name for name in needed if not values[name].value]
    if missing:
        raise UserError(
            f"--{missing[0]} is missing beside --{given[0]}={values[given[0]].value}; a task needs "
            f"--{', --'.join(needed)} and --task_index, a whole local cluster none of them"
        )
    cluster = cluster_from_hosts(values.ps_hosts, values.worker_hosts)
    return cluster, Task(values.job_name, values.task_index)


def _on_default_ports(values: flags.FlagValues) -> tuple[ClusterSpec, Task]:
    """Returns a cluster on this machine, and this process's task in it.

    It has --num_workers workers, or 1 without that flag; and with --strategy=ps one parameter
    server.
    """
    count = values.num_workers if values["num_workers"].present else 1
    if not 1 <= count <= _MOST_WORKERS:
        raise UserError(f"--num_workers={count} is out of range; give 1 to {_MOST_WORKERS}")
    index = values.task_index
    if values.job_name == "worker" and index >= count:
        raise UserError(
            f"--task_index={index} is beyond the workers of this machine, {count} without hosts; "
            f"give each task --num_workers={index + 1}, or --ps_hosts and --worker_hosts"
        )
    ports = {"worker": range(_PORT + 1, _PORT + 1 + count)}
    if values.strategy == "ps":
        ports["ps"] = range(_PORT, _PORT + 1)
    hosts = {job: [f"127.0.0.1:{port}" for port in ports[job]] for job in sorted(ports)}
    cluster = cluster_from_hosts(hosts.get("ps"), hosts["worker"])
    cluster.address_of(Task(values.job_name, index))
    return cluster, Task(values.job_name, index)


def _refuse_cluster(environment: str | None) -> None:
    """Raises a `UserError` if TF_CONFIG has other tasks: --strategy=local would not use them."""
    try:
        cluster, task = cluster_from_tf_config(environment or "")
    except UserError:
        return  # It describes no cluster.
    others = [other for other in all_tasks(cluster) if other != task]
    if others:
        raise UserError(
            f"TF_CONFIG describes a cluster with {others[0].name}, and --strategy=local trains in "
            "one process; add --strategy=ps, or unset TF_CONFIG"
        )


def _from_tf_config(environment: str, strategy: str) -> tuple[ClusterSpec, Task]:
    cluster, task = cluster_from_tf_config(environment)
    if task.job != EVALUATOR and (strategy == "ps") != ("ps" in cluster.jobs):
        wrong = "no ps; add one, or use --strategy=multi_worker"
        if strategy != "ps":
            wrong = "ps tasks; take them out, or use --strategy=ps"
        raise UserError(f"the cluster of TF_CONFIG has {wrong}")
    return cluster, task


def check_evaluation(values: flags.FlagValues, task: Task | None) -> None:
    """Raises a `UserError` for an evaluator without --logdir, or early stopping without evaluation.

    A task of a cluster may stop early even if it evaluates nothing: another command may have
    started an evaluator for its checkpoints.
    """
    if task is not None and task.job == EVALUATOR and values.logdir is None:
        raise UserError(
            "--logdir is missing; an evaluator needs that of the chief, whose checkpoints it reads"
        )
    patience = values.early_stopping_patience
    if patience and not (task or values.evaluator) and values.eval_in_chief is False:
        raise UserError(
            f"--early_stopping_patience={patience} counts evaluations, of which "
            "--noeval_in_chief leaves none; leave that out, or add --evaluator"
        )
