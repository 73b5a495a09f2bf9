"""The evaluator: a process outside of the cluster that evaluates the checkpoints of a run."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from typing import Any

import compat
from compat.checkpoint import files
from compat.cluster import access, proxies
from compat.cluster.liveness import identity
from compat.cluster.liveness.monitor import Monitor
from compat.cluster.roles import Role, chief_task
from compat.cluster.spec import ClusterSpec, Task
from compat.runtime.interface import Runtime
from compat.tracking import FINISHED, KILLED, Tracker, store_uri
from experiments.evaluation import best_checkpoint
from experiments.evaluation.evaluate import write_pictures
from experiments.evaluation.selection import Evaluation, Selection
from experiments.launching import devices
from experiments.launching.signals import Stop
from experiments.training.inputs import data_of
from experiments.training.loop import selection
from experiments.training.program import Program, build
from experiments.training.recording import completion
from experiments.training.recording.curve_tags import Board
from experiments.training.recording.log_folder import Wait, activity_monitor, newest_checkpoint
from experiments.training.recording.recording import check_logdir, system_metrics
from experiments.training.recording.report import named
from experiments.training.recording.run import Run

_POLL_SECS = 1.0
# The time that records have at the end to reach MLflow. A launcher that ends the evaluator does
# not end the process that sends them. A database is created by the chief, which may take three
# minutes.
_DELIVERY_SECS = 60.0
_DATABASE_SECS = 240.0


def run(
    experiment: Any,
    cluster: ClusterSpec,
    task: Task,
    stop: Stop,
    earlier_end: dict[str, Any] | None,
) -> None:
    """Evaluates each new checkpoint until the run is over.

    Args:
      experiment: the experiment, with the log folder of the run in its settings.
      cluster: the cluster, whose chief is watched; if it is empty, the log folder is watched.
      task: this process.
      stop: whether this process was asked to stop.
      earlier_end: what `completion.read` returned when this process started.
    """
    settings = experiment.settings
    devices.hide_gpus(task, Role.EVALUATE)
    options = replace(settings, gpu_memory_fraction=None)  # It has no GPU.
    runtime = compat.select_runtime(settings.runtime)
    if runtime.has_coordinator:
        devices.configure_eager(options, alone=True)
    check_logdir(settings.logdir)
    program = build(experiment, runtime, data_of(experiment.data()))
    if "validation" not in program.evaluations:
        raise compat.UserError(
            f"{type(experiment).__name__}.data() has no 'validation' split, so an evaluator has "
            "nothing to evaluate on; return one, or leave the evaluator out"
        )
    supervisor = compat.Supervisor(summary_op=None, saver=None)
    with supervisor.managed_session(
        "", devices.session_config(options)
    ) as session, contextlib.ExitStack() as opened:
        print(f"{task.name} evaluates the checkpoints of {settings.logdir} as they come")
        evaluator = _Evaluator(program, session, opened)
        with system_metrics(settings, task):
            evaluator.follow(_chief_monitor(settings, runtime, cluster), stop, earlier_end)


def _chief_monitor(settings: Any, runtime: Runtime, cluster: ClusterSpec) -> Monitor:
    """Returns a monitor of the chief, which raises when the chief has been missing for too long."""
    if not cluster:
        return activity_monitor(settings.logdir)
    proxies.go_past(access.cluster_hosts(cluster))
    chief = chief_task(cluster)
    run = identity.fingerprint(cluster, settings.run_token)
    check = identity.chief_check(cluster, runtime.has_coordinator, run)
    return Monitor({cluster.describe(chief): check}, settings.rendezvous_timeout)


class _Evaluator:
    """Evaluates checkpoints, and records the values; the stack `opened` closes the records."""

    def __init__(
        self, program: Program, session: compat.Session, opened: contextlib.ExitStack
    ) -> None:
        self._program = program
        self._settings = program.experiment.settings
        self._session = session
        self._opened = opened
        # If there is no checkpoint yet, recorded evaluations are of an earlier run in this folder.
        self._is_new = newest_checkpoint(self._settings.logdir) is None
        self._done: str | None = None
        self._unreadable: str | None = None
        self._selection: Selection | None = None
        self._step = -1  # The step of the last checkpoint that was evaluated.

    def follow(self, chief: Monitor, stop: Stop, earlier_end: dict[str, Any] | None) -> None:
        """Evaluates checkpoints as they come until the run is over, or its chief is lost."""
        settings, started, wait = self._settings, time.monotonic(), Wait()
        if earlier_end is not None:
            print(
                f"the training is over; evaluating its last checkpoint, and waiting "
                f"{settings.rendezvous_timeout:g} s for a chief that goes on with it"
            )
        while True:
            # The marker is read before the checkpoints: if it is there, so is the last checkpoint.
            end = completion.read(settings.logdir)
            earlier_end = None if end is None else earlier_end  # The run has resumed since.
            with stop.deferred():
                is_new = self._look()
            if is_new:
                wait.begin()
                continue
            # A marker from before the start of this process may be old: a chief that resumes the
            # run has some time to remove it.
            if end is not None and (
                end != earlier_end or time.monotonic() - started > settings.rendezvous_timeout
            ):
                print(f"the training in {settings.logdir} is over")
                return
            wait.go_on(f"a checkpoint after step {max(0, self._step)} in {settings.logdir}")
            chief.poll()
            time.sleep(_POLL_SECS)

    def _look(self) -> bool:
        """Evaluates the newest checkpoint, unless that was done before; returns whether it did."""
        prefix = newest_checkpoint(self._settings.logdir)
        if prefix is None or prefix == self._done:
            return False
        with contextlib.ExitStack() as holding:
            try:
                # The chief may remove its files during the evaluation, so they are linked first.
                held = holding.enter_context(best_checkpoint.held(prefix, self._settings.logdir))
                values = files.read(prefix)
            except (compat.UserError, OSError) as error:
                # The chief is writing or removing it; if it is broken, another one will follow.
                if prefix != self._unreadable:
                    print(f"passing over a checkpoint: {error}")
                self._unreadable = prefix
                return False
            self._done = prefix
            runtime = self._program.runtime
            variables, slices = runtime.variables(), runtime.slices()
            found = files.fitted(prefix, values, variables, slices, others=True)
            self._session.assign(variables, found)
            self._record(held, self._program.evaluate(self._session, "validation"))
        return True

    def _record(self, prefix: str, found: dict[str, float]) -> None:
        step = int(found["global_step"])
        values = named("validation", found, self._program.experiment.loss_name)
        selected = self._selection or self._open(-1 if self._is_new else step)
        last = selected.last_step
        self._step = max(step, last)
        if step <= last:
            return
        self._board.scalars(step, values)
        # These go to the chief's MLflow run, which has the names without "eval" already.
        self._tracker.scalars(step, {f"eval/{k.partition('/')[2]}": v for k, v in values.items()})
        write_pictures(self._program.metrics, self._board, step, "validation")
        run = Run(step, self._settings, self._session, self._board, self._settings.logdir)
        self._program.callbacks.on_evaluation(run, values)
        selected.take(prefix, Evaluation(step, values))

    def _open(self, resume_step: int) -> Selection:
        settings, opened = self._settings, self._opened
        folder = os.path.join(settings.logdir, "eval")
        selected = opened.enter_context(selection(self._program.experiment, resume_step, print))
        # Curves after the last evaluation in the history are removed; it is evaluated again.
        self._board = Board(folder, resume_step=selected.last_step)
        opened.callback(self._board.close)
        uri = store_uri(settings.tracking_uri, settings.logdir)
        self._tracker = tracker = Tracker(
            folder,
            tracking_uri=uri,
            experiment_name=settings.experiment_name,
            run_name=None,
            patience=_DATABASE_SECS if uri.startswith("sqlite") else _DELIVERY_SECS,
            training=settings.logdir,
        )
        # The status of the chief's MLflow run is not changed by this.
        opened.push(lambda kind, *_: tracker.close(FINISHED if kind is None else KILLED))
        self._selection = selected
        return selected
