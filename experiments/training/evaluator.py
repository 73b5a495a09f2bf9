"""The evaluator: a process beside a run, which evaluates its checkpoints as they come.

It is in no cluster and starts no server. All that it knows of the run it reads in its log folder;
what it writes there, no other process does.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from typing import Any, Callable

import numpy as np

import compat
from compat.checkpoint import files
from compat.cluster import access, proxies
from compat.cluster.roles import Role, chief_task
from compat.cluster.spec import ClusterSpec, Task
from compat.liveness import identity
from compat.liveness.monitor import Monitor
from compat.runtime.interface import current_runtime
from compat.tracking import FINISHED, KILLED, TensorBoard, Tracker, store_uri
from experiments.evaluation import best_checkpoint
from experiments.evaluation.history import Evaluation
from experiments.evaluation.selection import Selection
from experiments.launching.signals import Stop
from experiments.recording import completion, log_folder
from experiments.recording.log_folder import Wait, activity_monitor
from experiments.recording.recording import check_logdir
from experiments.recording.report import named
from experiments.recording.run import Run
from experiments.training import devices
from experiments.training.inputs import data_of
from experiments.training.loop import selection
from experiments.training.program import build_evaluation

FOLDER = "eval"
_POLL_SECS = 1.0
# For what MLflow has not been given in the end; beside a launcher the process that sends goes on
# when the evaluator is ended. A database is made by the chief first, which has three minutes.
_DELIVERY_SECS = 60.0
_DATABASE_SECS = 240.0


def run(
    experiment: Any,
    cluster: ClusterSpec,
    task: Task,
    stop: Stop,
    earlier_end: dict[str, Any] | None,
) -> None:
    """Evaluates the newest checkpoint repeatedly until the run is over.

    Args:
      experiment: as in the other tasks; its model and data have to be the same.
      cluster: the run's, to see whether its chief is there; may be empty.
      task: this one.
      stop: whether the user wants to end it.
      earlier_end: what `completion.read` returned when this process started.

    Raises:
      UserError: a setting, the data or the log folder is wrong, or the checkpoint is of another
        model.
      PeerError: the chief did not come, or has gone and not come back, in time.
      Stopped: the user ended it.
    """
    settings = experiment.settings
    devices.hide_gpus(task, Role.EVALUATE)
    options = replace(settings, gpu_memory_fraction=None)  # It has no GPU.
    if compat.select_runtime(settings.runtime).name == "modern":
        devices.configure_eager(options, alone=True)
    check_logdir(settings.logdir)
    program = build_evaluation(experiment, data_of(experiment.data()))
    if not program.can_evaluate("validation"):
        raise compat.UserError(
            f"{type(experiment).__name__}.data() has no 'validation' split, so an evaluator has "
            "nothing to evaluate on; return one, or leave the evaluator out"
        )
    supervisor = compat.Supervisor(summary_op=None, saver=None)
    with supervisor.managed_session("", devices.session_config(options)) as session:
        print(f"{task.name} evaluates the checkpoints of {settings.logdir} as they come")
        variables = supervisor.runtime.variables()

        def measure(prefix: str, values: dict[str, np.ndarray]) -> Evaluation:
            session.assign(variables, files.fitted(prefix, values, variables, others=True))
            found = program.evaluate(session, "validation")
            step = int(found.pop("global_step"))
            return Evaluation(step, named("validation", found, experiment.loss_name))

        with Evaluator(experiment, session, measure) as evaluator:
            _follow(settings, evaluator, _chief_monitor(settings, cluster).poll, stop, earlier_end)


def _follow(
    settings: Any,
    evaluator: Evaluator,
    poll: Callable[[], None],
    stop: Stop,
    earlier_end: dict[str, Any] | None,
) -> None:
    started = time.monotonic()
    wait = Wait()
    if earlier_end is not None:
        print(
            f"the training is over; evaluating its last checkpoint, and waiting "
            f"{settings.rendezvous_timeout:g} s for a chief that goes on with it"
        )
    while True:
        # First whether it is over: then the last checkpoint is there.
        end = completion.read(settings.logdir)
        earlier_end = None if end is None else earlier_end  # It has gone on since.
        with stop.deferred():
            is_new = evaluator.look()
        if is_new:
            wait.begin()
            continue
        # A chief that goes on with a training that was over is given time to say so.
        if end is not None and (
            end != earlier_end or time.monotonic() - started > settings.rendezvous_timeout
        ):
            print(f"the training in {settings.logdir} is over")
            return
        wait.go_on(f"a checkpoint after step {max(0, evaluator.step)} in {settings.logdir}")
        poll()
        time.sleep(_POLL_SECS)


def _chief_monitor(settings: Any, cluster: ClusterSpec) -> Monitor:
    """Returns what is polled for the chief; it raises once that is away for too long."""
    if not cluster:
        return activity_monitor(settings.logdir)
    proxies.go_past(access.cluster_hosts(cluster))
    chief = chief_task(cluster)
    run = identity.fingerprint(cluster, settings.run_token)
    check = identity.chief_check(cluster, current_runtime().name, run)
    return Monitor({cluster.describe(chief): check}, settings.rendezvous_timeout)


class Evaluator:
    """Measures checkpoints, and records what they give; a context manager.

    Args:
      experiment: as in the other tasks.
      session: where its variables are.
      measure: returns what a checkpoint gives, of its prefix and its values by name.

    Attributes:
      step: of the last checkpoint that was evaluated; -1 if none was.
    """

    def __init__(
        self,
        experiment: Any,
        session: compat.Session,
        measure: Callable[[str, dict[str, np.ndarray]], Evaluation],
    ) -> None:
        self._experiment = experiment
        self._settings = experiment.settings
        self._session = session
        self._measure = measure
        # Without any checkpoint, all that was evaluated is of an earlier training.
        self._is_new = log_folder.newest_checkpoint(self._settings.logdir) is None
        self._done: str | None = None
        self._unreadable: str | None = None
        self._selection: Selection | None = None
        self._opened = contextlib.ExitStack()
        self._status = FINISHED
        self.step = -1

    def look(self) -> bool:
        """Evaluates the newest checkpoint if it is a new one; returns whether it was.

        Raises:
          UserError: it is of another model, or another process evaluates this training.
        """
        prefix = log_folder.newest_checkpoint(self._settings.logdir)
        if prefix is None or prefix == self._done:
            return False
        with contextlib.ExitStack() as holding:
            try:
                # The chief may remove its files while they are measured.
                held = holding.enter_context(best_checkpoint.held(prefix, self._settings.logdir))
                values = files.read(prefix)
            except (compat.UserError, OSError) as error:
                # It is being written or removed at this moment; if not, there will be a next one.
                if prefix != self._unreadable:
                    print(f"passing over a checkpoint: {error}")
                self._unreadable = prefix
                return False
            self._done = prefix
            self._record(held, self._measure(prefix, values))
        return True

    def _record(self, prefix: str, evaluation: Evaluation) -> None:
        if self._selection is None:
            self._open(-1 if self._is_new else evaluation.step)
        assert self._selection is not None
        self.step = max(evaluation.step, self._selection.last_step)
        if evaluation.step <= self._selection.last_step:
            return
        self._board.scalars(evaluation.step, evaluation.values)
        # In the run's own record, where the chief has these names.
        renamed = {f"eval/{k.partition('/')[2]}": v for k, v in evaluation.values.items()}
        self._tracker.scalars(evaluation.step, renamed)
        logdir = self._settings.logdir
        run = Run(evaluation.step, self._settings, self._session, self._board, logdir)
        self._experiment.on_evaluation(run, evaluation.values)
        self._selection.take(prefix, evaluation)

    def _open(self, resume_step: int) -> None:
        settings = self._settings
        folder = os.path.join(settings.logdir, FOLDER)
        self._selection = self._opened.enter_context(
            selection(self._experiment, resume_step, print)
        )
        # What was written, but not in the history, is evaluated again.
        self._board = TensorBoard(folder, resume_step=self._selection.last_step)
        self._opened.callback(self._board.close)
        uri = store_uri(settings.tracking_uri, settings.logdir)
        self._tracker = Tracker(
            folder,
            tracking_uri=uri,
            experiment_name=settings.experiment_name,
            run_name=None,
            patience=_DATABASE_SECS if uri.startswith("sqlite") else _DELIVERY_SECS,
            training=settings.logdir,
        )
        self._opened.callback(lambda: self._tracker.close(self._status))

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: Any) -> None:
        """Ends the record; the run it was added to stays as it is."""
        self._status = FINISHED if kind is None else KILLED
        self._opened.close()
