"""From a command line, or keyword arguments, to a run of an experiment."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from typing import Any, Mapping

from absl import flags

from compat._tensorflow import startup, tf1
from compat.cluster import access
from compat.cluster.manager import check_agreement
from compat.cluster.roles import role
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError
from compat.runtime.interface import select_runtime
from compat.tracking.mlflow import run_id
from experiments.launching import command_line, local_cluster, signals
from experiments.recording import completion
from experiments.settings.flags import define_flags, print_config, settings_from_flags
from experiments.settings.place import EVALUATOR, check_evaluation, place_from_flags


def run(experiment: Any, **settings: Any) -> Any:
    """Runs an experiment: by the command line of this program or, with settings, in this process.

    As a program, `run(Cancer)` reads the flags, does what they say, and exits: a whole run in this
    process, a local cluster, or one task of a cluster. From Python, in a notebook or a test,
    `run(Cancer, strategy="local", hidden=32)` trains in this process; apart from the runtime of
    TensorFlow, which a process chooses once, nothing global stays behind.

    Args:
      experiment: a subclass of `Experiment`.
      **settings: values of its settings; at least one, or `strategy="local"`, in Python use.

    Returns:
      With settings an `experiments.Result`, of what was reached; else this does not return.

    Raises:
      UserError: a setting, the data or the log folder is wrong; with settings only.
    """
    if settings:
        return _run_here(experiment, settings)
    define_flags(experiment.Settings, experiment.presets)
    command_line.run(lambda values: main(experiment, values))
    return None


def read(
    experiment: Any, values: flags.FlagValues, environment: Mapping[str, str] = os.environ
) -> tuple[Any, ClusterSpec | None, Task | None]:
    """Returns the settings, the cluster and this process's task that parsed flags describe.

    Args:
      experiment: a subclass of `Experiment`, whose flags are defined.
      values: the parsed flags.
      environment: may have TF_CONFIG, and a cluster manager's variables.

    Returns:
      As `experiments.settings.place.place_from_flags`, after the settings.

    Raises:
      UserError: something is wrong, missing or contradictory; found without TensorFlow.
    """
    settings = settings_from_flags(values, experiment.Settings, experiment.presets)
    settings = settings.resolved(experiment.name())
    cluster, task = place_from_flags(values, environment.get("TF_CONFIG"))
    check_evaluation(values, task)
    if cluster is not None and task is not None:
        check_agreement(cluster, task, environment)
        # A wrong task is wrong on either runtime.
        role(task, cluster, "legacy" if settings.runtime == "auto" else settings.runtime)
        if task.job != EVALUATOR:
            access.check_allowed(access.cluster_hosts(cluster), settings.allow_network)
    return settings, cluster, task


def main(experiment: Any, values: flags.FlagValues) -> int:
    """Does what the flags say; returns the exit code."""
    settings, cluster, task = read(experiment, values)
    if values.print_config:
        print_config(settings)
        return 0
    if settings.strategy != "local" and cluster is None:
        # What each task would find out for itself, all have to agree on; the last flag counts.
        argv = [*sys.argv[1:], f"--logdir={settings.logdir}", *experiment.shared_flags(settings)]
        return local_cluster.launch_local(
            local_cluster.this_program(),
            argv,
            settings.num_ps if settings.strategy == "ps" else 0,
            settings.num_workers,
            strategy=settings.strategy,
            max_restarts=settings.max_restarts,
            evaluator=settings.evaluator,
        )
    if cluster is not None and task is not None and task.job == EVALUATOR:
        return _evaluate(experiment, settings, cluster, task)
    _train(experiment, settings, cluster, task or Task("worker", 0))
    return 0


def _run_here(experiment: Any, given: dict[str, Any]) -> Any:
    settings = experiment.Settings(**given).resolved(experiment.name())
    if settings.strategy != "local":
        raise UserError(
            f"run() was given strategy={settings.strategy!r} in Python; a cluster needs processes "
            "of its own: start the program with --strategy, or give strategy='local'"
        )
    from experiments.training import task as training

    # What an earlier run in this process has made is not this one's.
    select_runtime(settings.runtime).clear()
    main_thread = threading.current_thread() is threading.main_thread()
    with signals.signals() if main_thread else contextlib.nullcontext(signals.Stop()) as stop:
        result = training.run(experiment(settings), None, Task("worker", 0), stop)
    # MLflow's store often takes a short run only when the record is closed.
    return result and dataclasses.replace(result, run_id=run_id.read(result.logdir))


def _train(experiment: Any, settings: Any, cluster: ClusterSpec | None, task: Task) -> None:
    command_line.quiet_tensorflow()
    with signals.signals() as stop:
        with startup.without_notes():
            from experiments.training import task as training

            tf1.logging.set_verbosity(tf1.logging.ERROR)
        training.run(experiment(settings), cluster, task, stop)


def _evaluate(experiment: Any, settings: Any, cluster: ClusterSpec, task: Task) -> int:
    # First of all: TensorFlow takes seconds, in which a short run may come to its end. One that is
    # complete already, with these settings, does not come to another.
    earlier_end = None if completion.step(settings) else completion.read(settings.logdir)
    command_line.quiet_tensorflow()
    with signals.signals() as stop:
        with startup.without_notes():
            from experiments.training import evaluator

            tf1.logging.set_verbosity(tf1.logging.ERROR)
        evaluator.run(experiment(settings), cluster, task, stop, earlier_end)
    return 0
