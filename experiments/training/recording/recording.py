"""The record of a run: one TensorBoard folder and one MLflow run, written by the chief."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, ContextManager

from compat import Server
from compat.checkpoint.io import CheckpointIO
from compat.cluster.spec import Task
from compat.errors import Stopped, UserError, unless_usable
from compat.tracking import Console, MultiWriter, Tracker, run_page, tracking_command
from compat.tracking.console import LOG
from compat.tracking.mlflow import run_id
from compat.tracking.mlflow.source import environment, git_commit
from compat.tracking.mlflow.system_metrics import sampled
from compat.tracking.tensorboard.summaries import table
from compat.tracking.writer import FAILED, FINISHED, KILLED
from experiments.evaluation import best_checkpoint
from experiments.evaluation.early_stopping import StopRequest
from experiments.settings import write_settings
from experiments.settings.files import changes
from experiments.training.recording import completion, description, origin
from experiments.training.recording.curve_tags import Board
from experiments.training.recording.log_folder import newest_checkpoint
from experiments.training.recording.report import Values
from experiments.training.recording.run import Result

_LONGEST_NAME = 250  # The longest name of a run that every release of MLflow accepts.


def check_logdir(logdir: str) -> None:
    """Raises a `UserError` if the log folder cannot be created or written to; changes nothing."""
    whole = os.path.abspath(logdir)
    if whole != whole.encode("utf-8", "replace").decode("utf-8"):
        raise UserError(f"log folder {whole} is not UTF-8; choose another with --logdir")
    paths = map(str, (Path(logdir), *Path(logdir).parents))
    what, remedy = f"log folder {logdir} cannot be written to", "choose another with --logdir"
    with unless_usable(what, remedy):
        tempfile.TemporaryFile(dir=next(filter(os.path.lexists, paths))).close()


def system_metrics(settings: Any, task: Task | None) -> ContextManager[None]:
    """Records the CPU, memory and network use of a task while the context is open.

    `task` is None for a process that trains alone.
    """
    task = task or Task("worker", 0)
    place = settings.logdir, f"{task.job}-{task.index}"
    return sampled(lambda: place, settings.system_metrics_every)


class Recording:
    """Opens the writers of a run, and closes them with the status with which the run ended."""

    def __init__(
        self,
        experiment: Any,
        runtime: str,
        data: Any,
        server: Server | None,
        step: int,
        console: Console,
    ) -> None:
        self._experiment, self._data = experiment, data
        self._settings = settings = experiment.settings
        self._logdir = settings.logdir
        self._console = console
        self._step = step  # The global step from which the run resumes; 0 for a new run.
        self._checkpoint = newest_checkpoint(settings.logdir)
        self._status = FAILED
        self._stopped: str | None = None  # The reason for an early end.
        # -1 removes all records of a run that was killed before its first checkpoint.
        board = Board(settings.logdir, resume_step=step or -1, say=console.say)
        try:
            self._tracker = tracker = Tracker(
                settings.logdir,
                tracking_uri=settings.tracking_uri,
                experiment_name=settings.experiment_name,
                run_name=settings.run_name or os.path.basename(settings.logdir)[:_LONGEST_NAME],
                say=console.say,
                resume_step=step or -1,
            )
        except BaseException:
            board.close(FAILED)
            raise
        self.writer = MultiWriter(board, tracker)
        params = {**settings.params(), "runtime": runtime}  # Not "auto".
        if data.name:
            params["dataset"] = data.name
        self.writer.params(params, settings.hyperparameters())
        self.writer.dataset(
            data.name or type(experiment).__name__, data.checksum, data.source, data.sizes
        )
        tags = {**_tags(data, runtime, server), "mlflow.parentRunId": settings.parent_run}
        self.writer.tags({tag: value for tag, value in tags.items() if value})
        self._describe({}, step)

    def __enter__(self) -> Recording:
        return self

    def start(
        self,
        total_steps: int | None,
        graph_def: bytes,
        request: StopRequest | None,
        goes_on: bool = False,
    ) -> None:
        """Records the graph of a new run; for an old run, logs where it resumes, or why not.

        Args:
          total_steps: the step at which the run ends; None if it is not known.
          graph_def: the serialized graph of the training step.
          request: the request by which the run was stopped early, if it still holds.
          goes_on: whether streams of data resume after the batches that were used; else they begin
            anew.
        """
        completion.clear(self._logdir)
        changed = changes(self._settings, self._logdir) if self._step else []
        write_settings(self._settings, self._logdir)
        origin.write(type(self._experiment), self._logdir)
        if self._step == 0:
            self.writer.graph(graph_def)
        elif request is not None:
            more = f"one of more than {request.patience}, or " if request.patience else ""
            self._console.say(
                f"the run in {self._logdir} was stopped early, at step {self._step}; give "
                f"--early_stopping_patience=0 to resume it without early stopping, or {more}"
                "another --logdir to start anew"
            )
        elif total_steps is None or self._step < total_steps:
            streams = "each worker resumes its stream of data; a few batches may be used again"
            again = f"; {streams if goes_on else 'its stream of data begins anew'}"
            again = again if self._data.streams else ""
            self._console.say(f"resuming from step {self._step} in {self._logdir}{again}")
        else:
            self._console.say(completion.message(self._logdir, self._step))
        for line in changed:
            self._console.say(line)

    def artifact(self, checkpoint: str) -> None:
        """Records a copy of the files of a checkpoint, the last one so far."""
        self._checkpoint = checkpoint
        for file in sorted(Path(checkpoint).parent.glob(Path(checkpoint).name + ".*")):
            self.writer.artifact(str(file), folder="checkpoint")

    def ended_early(self, request: StopRequest, step: int) -> None:
        """Records that the run ends early at `step`, because of `request`."""
        self._stopped = request.reason
        end = f"at step {step}: {request.reason}"
        self._console.say(f"early stopping {end}")
        self.writer.tags({"early_stopping": end})

    def stopped(self) -> None:
        """Records that the user ended the run."""
        self._status = KILLED
        self._console.say(f"stopped; the same command with --logdir={self._logdir} resumes")

    def finish(
        self, step: int, evaluated: Values, test: Values, used: Values | None = None
    ) -> Result:
        """Records that the run is complete; returns its result.

        Args:
          step: the last global step that the chief has seen. The last checkpoint may be of a later
            step, as other workers make updates, too.
          evaluated: the last values of the validation split.
          test: the values of the test split, which are recorded at the step of the checkpoint.
          used: the number of examples that the workers have used, by the names of the curves.
        """
        if self._checkpoint is not None:
            step = max(step, best_checkpoint.step_of(self._checkpoint))
        # If the run was complete before, these values are already recorded for this step.
        if step > self._step and (test or used):
            self.writer.scalars(step, test)
            self._tracker.scalars(step, used or {})
            values = {**evaluated, **test, **(used or {})}
            texts = {name: f"{value:.8g}" for name, value in values.items()}
            self.writer.texts(step, {"result": table(texts)})
        self._describe({**test, **evaluated}, step)
        self._status = FINISHED
        # Written before the other tasks are told, and exit: a task that is started again finds the
        # others, or the marker.
        if self._checkpoint is not None:
            completion.write(self._settings, self._checkpoint)
        best = CheckpointIO(os.path.join(self._logdir, best_checkpoint.FOLDER)).history()
        return Result(
            step=step,
            metrics={**evaluated, **test},
            checkpoint=self._checkpoint,
            best_checkpoint=best[-1] if best else None,
            run_id=run_id.read(self._logdir),
            logdir=self._logdir,
            stopped=self._stopped,
        )

    def _describe(self, result: Values, step: int) -> None:
        text = description.text(self._experiment, self._data, result, step, self._stopped)
        self._tracker.tags({description.TAG: text})

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (KeyboardInterrupt, Stopped)):
            self._status = KILLED
        self._console.close()
        logdir, tracking_uri = self._logdir, self._settings.tracking_uri
        board = f"tensorboard --logdir {shlex.quote(description.short(logdir))}"
        self._console.say(f"TensorBoard:  {_runnable(board)}")
        self._console.say(f"MLflow:       {_runnable(tracking_command(logdir, tracking_uri))}")
        self.writer.artifact(os.path.join(logdir, LOG))
        try:
            self.writer.close(FAILED if error and self._status == FINISHED else self._status)
        finally:  # A short run is sure to be in MLflow's store only after the writer is closed.
            page = run_page(logdir, tracking_uri)
            if page is not None:
                self._console.say(f"This run:     {page}")


def _runnable(command: str) -> str:
    """Returns a command to paste into a shell, with a path if this environment is not active."""
    name, space, rest = command.partition(" ")
    own = shutil.which(name, path=str(Path(sys.executable).parent))
    if own is None or shutil.which(name) == own:
        return command
    return shlex.quote(description.short(own)) + space + rest


def _tags(data: Any, runtime: str, server: Server | None) -> dict[str, str]:
    return {
        **environment({} if server is None else server.cluster.as_dict()),
        "runtime": runtime,
        "git_commit": git_commit(str(Path(__file__).parent)) or "unknown",
        "dataset": data.name,
        "dataset_source": data.source,
        "dataset_checksum": data.checksum,
    }
