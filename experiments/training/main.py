"""Runs an experiment, by a command line or by keyword arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn

from absl import flags

from compat._tensorflow import tf1
from compat.cluster import access
from compat.cluster.environment import check_agreement
from compat.cluster.roles import role
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError
from compat.processes.command import report
from compat.runtime.interface import select_runtime
from compat.runtime.registry import has_coordinator
from compat.tracking import notebook
from compat.tracking.mlflow import run_id
from experiments.launching import command_line, forgotten, launcher, missing_task, signals
from experiments.settings import Settings
from experiments.settings.files import text_of
from experiments.settings.flags import define_flags, settings_from_flags
from experiments.settings.place import (
    EVALUATOR,
    check_evaluation,
    is_on_default_ports,
    place_from_flags,
)
from experiments.training.experiment import Experiment
from experiments.training.recording import completion
from experiments.training.recording.callback import check_methods

_PACKAGE = Path(__file__).resolve().parents[1]


def run(experiment: Any, **settings: Any) -> Any:
    """Runs an experiment, by the command line of this program or with the settings given here.

    In a program, `run(Cancer)` reads the flags, trains as they say, and exits. The flags ask for a
    whole run in this process, for a cluster on this machine, or for one task of a cluster.

    In a notebook, or if settings are given, as in `run(Cancer, strategy="local", hidden=32)`, it
    trains in this process and returns. It leaves no global state behind, apart from the runtime of
    TensorFlow, which a process chooses once.

    Args:
      experiment: a subclass of `Experiment`.
      **settings: values of its settings. If there are any, such as `strategy="local"`, the command
        line is not read.

    Returns:
      In a notebook or with settings, the `experiments.Result` of the run; else this does not
      return.

    Raises:
      UserError: in a notebook or with settings: a setting, the data or the log folder is wrong.
    """
    forgotten.used()
    if settings or hasattr(sys, "ps1"):  # Interactive: the command line is that of Python.
        _check_class(experiment)
        return _run_here(experiment, settings)
    if experiment.__module__ == "__main__" and _PACKAGE in Path(sys.argv[0]).resolve().parents:
        # A program of this package imports its own `models`, not a folder in the current directory.
        sys.path.insert(0, str(_PACKAGE.parent))
    return run_program(experiment)


def run_program(experiment: Any, file: str | None = None) -> NoReturn:
    """Runs an experiment by the command line, and exits.

    `file` is given for `python -m experiments FILE`, whose first argument is not a flag.
    """
    try:
        _check_class(experiment)
        define_flags(experiment.Settings, experiment.presets)
    except UserError as error:
        sys.exit(report(error))
    command_line.run(lambda values: main(experiment, values), file)
    raise AssertionError("run_main exits")


def _check_class(experiment: Any) -> None:
    """Raises a `UserError` for an object that is not an experiment class with valid settings."""
    settings = experiment.Settings
    if not isinstance(experiment, type):
        name = type(experiment).__name__
        raise UserError(f"run() was given an instance of {name}; give the class: run({name})")
    if not issubclass(settings, Settings):
        raise UserError(
            f"{experiment.__name__}.Settings has no base; write class Settings(Settings), of "
            "`from experiments import Settings`"
        )
    check_methods(experiment, Experiment)


def _made(experiment: Any, settings: Any) -> Any:
    """Returns an instance of an experiment, with its settings."""
    made = experiment(settings)
    if not hasattr(made, "settings"):
        raise UserError(
            f"{experiment.__name__}.__init__ keeps no settings; begin it with "
            "super().__init__(settings)"
        )
    return made


def read_flags(
    experiment: Any, values: flags.FlagValues
) -> tuple[Any, ClusterSpec | None, Task | None]:
    """Returns the settings, the cluster and this process's task that flags and TF_CONFIG describe.

    Wrong, missing or contradictory values raise a `UserError`, before TensorFlow is loaded.
    """
    settings = settings_from_flags(values, experiment.Settings, experiment.presets)
    settings = settings.resolved(experiment.name())
    cluster, task = place_from_flags(values, os.environ.get("TF_CONFIG"))
    check_evaluation(values, task)
    if cluster is not None and task is not None:
        check_agreement(cluster, task, os.environ)
        # Raises if the cluster cannot have such a task.
        role(task, cluster, has_coordinator(settings.runtime))
        if task.job != EVALUATOR:
            access.check_allowed(access.cluster_hosts(cluster), settings.allow_network)
    return settings, cluster, task


def main(experiment: Any, values: flags.FlagValues) -> int:
    """Runs the task, the cluster or the whole run that the flags ask for; returns the exit code."""
    settings, cluster, task = read_flags(experiment, values)
    if values.print_config:
        print(text_of(settings), end="")
        return 0
    if values.dry_run:
        return _dry_run(experiment, settings, task)
    if settings.strategy != "local" and cluster is None:
        return _launch(experiment, settings)
    say: Callable[[str], None] = print
    if cluster and task and is_on_default_ports(values, os.environ.get("TF_CONFIG")):
        say = missing_task.announce(cluster, task, launcher.this_program(), sys.argv[1:])
    task = task or Task("worker", 0)
    earlier_end = None
    if task.job == EVALUATOR and not completion.step(settings):
        # This is read before TensorFlow is loaded, which takes seconds: a short run may end in that
        # time, and its marker would look like that of an earlier run. If a run with these settings
        # is complete already, its marker is the one that counts.
        earlier_end = completion.read(settings.logdir)
    with signals.signals() as stop:
        command_line.load_tensorflow()
        _do_part(_made(experiment, settings), cluster, task, stop, earlier_end, say)
    return 0


def _dry_run(experiment: Any, settings: Any, task: Task | None) -> int:
    """Makes one update and one evaluation, in this process; returns the exit code."""
    if task is not None:
        raise UserError(
            f"--dry_run is of a whole run, and --job_name={task.job} of one of its tasks; leave "
            "out one of them"
        )
    with signals.signals():
        command_line.load_tensorflow()
        from experiments.training import dry_run

        made = _made(experiment, dry_run.alone(settings))
        with _explained(made):
            dry_run.dry_run(made, settings)
    return 0


@contextlib.contextmanager
def _explained(experiment: Any) -> Iterator[None]:
    """Replaces an error of TensorFlow by the one that `Experiment.explain` returns, if any."""
    try:
        yield
    except tf1.errors.InvalidArgumentError as error:
        explained = experiment.explain(error)
        if explained is None:
            raise
        raise explained from error


def _launch(experiment: Any, settings: Any) -> int:
    """Runs this program once per task of a cluster on this machine; returns the exit code."""
    with launcher.loading() as fork_server:
        # All tasks need the same log folder, and so on, so they are given it; the last flag counts.
        shared = [f"--logdir={settings.logdir}", *experiment.shared_flags(settings)]
        return launcher.launch_local(
            launcher.this_program(),
            [*sys.argv[1:], *shared],
            settings.num_ps if settings.strategy == "ps" else 0,
            settings.num_workers,
            strategy=settings.strategy,
            max_restarts=settings.max_restarts,
            evaluator=settings.evaluator,
            logdir=settings.logdir,
            fork_server=fork_server,
        )


def _do_part(
    experiment: Any,
    cluster: ClusterSpec | None,
    task: Task,
    stop: signals.Stop,
    earlier_end: Any = None,
    say: Callable[[str], None] = print,
) -> Any:
    """Runs `task` or, without a cluster, the whole run; returns the result of a chief."""
    with _explained(experiment):
        if cluster is not None and task.job == EVALUATOR:
            from experiments.training import evaluator

            return evaluator.run(experiment, cluster, task, stop, earlier_end)
        from experiments.training import task as part

        return part.run(experiment, cluster, task, stop, say)


def _run_here(experiment: Any, given: dict[str, Any]) -> Any:
    settings = experiment.Settings(**given).resolved(experiment.name())
    if settings.strategy != "local":
        raise UserError(
            f"run() was given strategy={settings.strategy!r} in Python; a cluster needs processes "
            "of its own: start the program with --strategy, or give strategy='local'"
        )
    # Removes the graph and the variables of an earlier run in this process.
    select_runtime(settings.runtime).clear()
    main_thread = threading.current_thread() is threading.main_thread()
    with signals.signals() if main_thread else contextlib.nullcontext(signals.Stop()) as stop:
        result = _do_part(_made(experiment, settings), None, Task("worker", 0), stop)
    if result and notebook.is_notebook():
        notebook.show_curves(result.history)
    # A short run often reaches MLflow's store, and so has an id, only when its record is closed.
    return result and dataclasses.replace(result, run_id=run_id.read(result.logdir))
