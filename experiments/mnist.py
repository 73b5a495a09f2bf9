r"""Trains a network on MNIST: in one process, with parameter servers, or on workers in step.

A whole cluster on this machine:

    python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2

One task of a cluster on several machines, the same command on each but for job and index:

    python -m experiments.mnist --strategy=ps --job_name=worker --task_index=0 \
        --ps_hosts=pc-01:2222 --worker_hosts=pc-02:2222,pc-03:2222 --allow_network

A process beside a training, which evaluates its checkpoints:

    python -m experiments.mnist --job_name=evaluator --logdir=runs/1
"""

from __future__ import annotations

import os
import sys

from absl import flags

from compat import datasets
from compat._tensorflow import startup
from compat.cluster import access
from compat.cluster.manager import check_agreement
from compat.cluster.roles import role
from compat.cluster.spec import ClusterSpec, Task
from experiments.launching import command_line, local_cluster, signals
from experiments.recording import completion
from experiments.settings.config import Config
from experiments.settings.flags import (
    EVALUATOR,
    check_evaluation,
    config_from_flags,
    define_cluster,
    define_training,
    place_from_flags,
)

define_cluster()
define_training()


def main(values: flags.FlagValues) -> int:
    """Runs what the flags say; returns the exit code."""
    config = config_from_flags(values)
    cluster, task = place_from_flags(values, os.environ.get("TF_CONFIG"))
    check_evaluation(values, task)
    if values.strategy != "local" and cluster is None:
        # What each task would find out for itself, all have to agree on; the last flag counts.
        own = [*sys.argv[1:], f"--logdir={config.logdir}"]
        if config.dataset == "auto":
            own.append(f"--dataset={datasets.load('auto', config.data_dir).name}")
        num_ps = values.num_ps if values.strategy == "ps" else 0
        return local_cluster.launch_local(
            "experiments.mnist",
            own,
            num_ps,
            values.num_workers,
            strategy=values.strategy,
            max_restarts=values.max_restarts,
            evaluator=values.evaluator,
        )
    if cluster is not None and task is not None:
        check_agreement(cluster, task, os.environ)
        # A wrong task is said before TensorFlow loads, and is wrong on either runtime.
        role(task, cluster, "legacy" if config.runtime == "auto" else config.runtime)
        if task.job == EVALUATOR:
            return _evaluate(config, cluster, task)
        access.check_allowed(access.cluster_hosts(cluster), config.allow_network)
    return _train(config, cluster, task or Task("worker", 0))


def _train(config: Config, cluster: ClusterSpec | None, task: Task) -> int:
    command_line.quiet_tensorflow()
    with signals.signals() as stop:
        with startup.without_notes():
            from experiments.training import loop
        loop.run(config, cluster, task, stop)
    return 0


def _evaluate(config: Config, cluster: ClusterSpec, task: Task) -> int:
    # First of all: TensorFlow takes seconds, in which a short training may come to its end. One
    # that is complete already, with these settings, does not come to another.
    earlier_end = None if completion.step(config) else completion.read(config.logdir)
    command_line.quiet_tensorflow()
    with signals.signals() as stop:
        with startup.without_notes():
            from experiments.training import evaluator
        evaluator.run(config, cluster, task, stop, earlier_end)
    return 0


if __name__ == "__main__":
    command_line.run(main)
