"""The record of a run: one TensorBoard folder and one MLflow run, written by the chief."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping

from compat import Server, UserError, _tensorflow
from compat.checkpoint.files import history as checkpoints
from compat.errors import Stopped
from compat.runtime.interface import current_runtime
from compat.tracking import Console, MultiWriter, TensorBoard, Tracker, tracking_command
from compat.tracking.mlflow import run_id
from experiments.evaluation import best_checkpoint, early_stopping
from experiments.evaluation.early_stopping import StopRequest
from experiments.recording import completion
from experiments.recording.log_folder import newest_checkpoint
from experiments.recording.report import named
from experiments.recording.run import Result
from experiments.settings import write_settings


def check_logdir(logdir: str) -> None:
    """Sees that the log folder can be made and written to; leaves nothing behind.

    Raises:
      UserError: it cannot.
    """
    existing = Path(logdir)
    while not os.path.lexists(str(existing)):
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=str(existing)):
            pass
    except OSError as error:
        raise UserError(
            f"log folder {logdir} cannot be written to ({error.strerror}); "
            "choose another with --logdir"
        ) from error


class Recording:
    """Opens the writers of a run, and closes them with the status with which it really ended.

    Args:
      experiment: its settings become parameters.
      data: what is trained on.
      server: this task's server, or None.
      step: the global step from which the run resumes; 0 for a new one.
      console: told where the record is.

    Attributes:
      writer: takes the curves.
    """

    def __init__(
        self, experiment: Any, data: Any, server: Server | None, step: int, console: Console
    ) -> None:
        self._experiment = experiment
        self._settings = settings = experiment.settings
        self._streams = data.streams
        self._console = console
        self._step = step
        self._checkpoint = newest_checkpoint(settings.logdir)
        self._status = "FAILED"
        # Nothing stays of a run that was cut off before its first checkpoint.
        board = TensorBoard(settings.logdir, resume_step=step or -1, say=console.say)
        try:
            tracker = Tracker(
                settings.logdir,
                tracking_uri=settings.tracking_uri,
                experiment_name=settings.experiment_name,
                run_name=settings.run_name,
                say=console.say,
                resume_step=step or -1,
            )
        except BaseException:
            board.close("FAILED")
            raise
        self.writer = MultiWriter(board, tracker)
        params = settings.params()
        if data.name:
            params["dataset"] = data.name
        self.writer.params(params)
        self.writer.tags(_tags(data, server))
        if settings.parent_run:
            self.writer.tags({"mlflow.parentRunId": settings.parent_run})

    def __enter__(self) -> Recording:
        return self

    def start(self, total_steps: int | None, graph_def: bytes, request: StopRequest | None) -> None:
        """Records the graph of a new run; of another one, logs where it resumes, or why not.

        Args:
          total_steps: at which it ends, if that is known.
          graph_def: of the training step.
          request: what has ended it early, or None.
        """
        completion.clear(self._settings.logdir)
        logdir = self._settings.logdir
        write_settings(self._settings, logdir)
        if self._step == 0:
            self.writer.graph(graph_def)
        elif request is not None:
            self._console.say(early_stopping.message(logdir, self._step, request))
        elif total_steps is None or self._step < total_steps:
            again = "; its stream of data begins anew" if self._streams else ""
            self._console.say(f"resuming from step {self._step} in {logdir}{again}")
        else:
            self._console.say(completion.message(logdir, self._step))

    def artifact(self, checkpoint: str) -> None:
        """Keeps a copy of the files of a checkpoint, which is the last one so far."""
        self._checkpoint = checkpoint
        for file in sorted(Path(checkpoint).parent.glob(Path(checkpoint).name + ".*")):
            self.writer.artifact(str(file), folder="checkpoint")

    def ended_early(self, request: StopRequest, step: int) -> None:
        """Records that the run ends at `step`, as it was requested to."""
        self._console.say(f"early stopping at step {step}: {request.reason}")
        self.writer.tags({"early_stopping": f"at step {step}: {request.reason}"})

    def stopped(self) -> None:
        """Records that the user ended the run."""
        self._status = "KILLED"
        logdir = self._settings.logdir
        self._console.say(f"stopped; the same command with --logdir={logdir} resumes")

    def finish(
        self,
        step: int,
        test: Mapping[str, float],
        evaluated: Mapping[str, float],
        best_test: Mapping[str, float] | None = None,
    ) -> Result:
        """Records that the run is complete; returns its result.

        Args:
          step: the last global step.
          test: what the test split gave, by name.
          evaluated: what the last evaluation gave, by name of its curve.
          best_test: what the test split gave for the best checkpoint, None where there is none.
        """
        loss_name = self._experiment.loss_name
        metrics = named("test", test, loss_name)
        metrics.update(named("best_test", best_test or {}, loss_name))
        # A run that was complete before has these values already, at this very step.
        if step > self._step and metrics:
            self.writer.scalars(step, metrics)
        self._status = "FINISHED"
        # Before the other tasks are told: one that is started again finds them, or the marker.
        if self._checkpoint is not None:
            completion.write(self._settings, self._checkpoint)
        logdir = self._settings.logdir
        best = checkpoints(os.path.join(logdir, best_checkpoint.FOLDER))
        return Result(
            step=step if self._checkpoint is None else best_checkpoint.step_of(self._checkpoint),
            metrics={**evaluated, **metrics},
            checkpoint=self._checkpoint,
            best_checkpoint=best[-1] if best else None,
            run_id=run_id.read(logdir),
            logdir=logdir,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        if isinstance(error, (KeyboardInterrupt, Stopped)):
            self._status = "KILLED"
        logdir = self._settings.logdir
        self._console.close()
        mlflow = tracking_command(logdir, self._settings.tracking_uri)
        self._console.say(
            f"TensorBoard:  {_runnable(f'tensorboard --logdir {shlex.quote(logdir)}')}"
        )
        self._console.say(f"MLflow:       {_runnable(mlflow)}")
        self.writer.artifact(str(Path(logdir) / "console.log"))
        self.writer.close("FAILED" if error and self._status == "FINISHED" else self._status)


def _runnable(command: str) -> str:
    """Returns the command as it can be pasted: with its path if this environment is not active."""
    name, space, rest = command.partition(" ")
    own = shutil.which(name, path=str(Path(sys.executable).parent))
    if own is None or shutil.which(name) == own:
        return command
    return shlex.quote(own) + space + rest


def _tags(data: Any, server: Server | None) -> dict[str, str]:
    jobs = {} if server is None else server.cluster.as_dict()
    shape = ", ".join(f"{len(hosts)} {job}" for job, hosts in sorted(jobs.items()))
    return {
        "runtime": current_runtime().name,
        "cluster": shape or "one process",
        "tensorflow": _tensorflow.version(),
        "python": platform.python_version(),
        "git_commit": _git_commit(),
        **{
            tag: value
            for tag, value in (
                ("dataset", data.name),
                ("dataset_source", data.source),
                ("dataset_checksum", data.checksum),
            )
            if value
        },
    }


def _git_commit() -> str:
    """Returns the commit of this code, or "unknown" where it is installed without its history."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(
            command,
            cwd=str(Path(__file__).parent),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.decode().strip() or "unknown"
