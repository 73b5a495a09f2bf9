"""The record of a training: one TensorBoard folder and one MLflow run, kept by the chief."""

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

import numpy as np

from compat import Server, UserError, _tensorflow
from compat.datasets import Dataset
from compat.runtime.interface import current_runtime
from compat.tracking import Console, MultiWriter, TensorBoard, Tracker, tracking_command
from experiments.evaluation import early_stopping
from experiments.evaluation.early_stopping import StopRequest
from experiments.launching.signals import Stopped
from experiments.recording import completion
from experiments.recording.log_folder import newest_checkpoint
from experiments.settings.config import Config


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
    """Opens the writers for a training and gives the run the status with which it really ended.

    Args:
      config: the settings; all of them become parameters.
      data: what is trained on.
      server: this task's server, or None.
      step: the global step from which the training goes on; 0 for a new one.
      console: told where the record lies.

    Attributes:
      writer: takes the curves.
    """

    def __init__(
        self, config: Config, data: Dataset, server: Server | None, step: int, console: Console
    ) -> None:
        self._config = config
        self._console = console
        self._step = step
        self._checkpoint = newest_checkpoint(config.logdir)
        self._status = "FAILED"
        # Nothing stays of a training that was cut off before its first checkpoint.
        board = TensorBoard(config.logdir, resume_step=step or -1, say=console.say)
        try:
            tracker = Tracker(
                config.logdir,
                tracking_uri=config.tracking_uri,
                experiment_name=config.experiment_name,
                run_name=config.run_name,
                say=console.say,
                resume_step=step or -1,
            )
        except BaseException:
            board.close("FAILED")
            raise
        self.writer = MultiWriter(board, tracker)
        self.writer.params(dict(config.params(), dataset=data.name))
        self.writer.tags(_tags(data, server))
        if config.parent_run:
            self.writer.tags({"mlflow.parentRunId": config.parent_run})

    def __enter__(self) -> Recording:
        return self

    def start(
        self, total_steps: int, graph_def: bytes, images: np.ndarray, request: StopRequest | None
    ) -> None:
        """Records the graph and some input images, uint8 `[k, 28, 28]`, if the training is new.

        Else says where it goes on, or that `request` has ended it early.
        """
        completion.clear(self._config.logdir)
        if self._step == 0:
            self.writer.graph(graph_def)
            self.writer.images(0, {"input": images[..., np.newaxis]})
        elif request is not None:
            logdir = self._config.logdir
            self._console.say(early_stopping.message(logdir, self._step, request))
        elif self._step < total_steps:
            self._console.say(f"going on from step {self._step} in {self._config.logdir}")
        else:
            self._console.say(completion.message(self._config.logdir, self._step))

    def artifact(self, checkpoint: str) -> None:
        """Keeps a copy of the files of a checkpoint, which is the last one so far."""
        self._checkpoint = checkpoint
        for file in sorted(Path(checkpoint).parent.glob(Path(checkpoint).name + ".*")):
            self.writer.artifact(str(file), folder="checkpoint")

    def ended_early(self, request: StopRequest, step: int) -> None:
        """Notes that the training ends at `step`, as it was asked to."""
        self._console.say(f"early stopping at step {step}: {request.reason}")
        self.writer.tags({"early_stopping": f"at step {step}: {request.reason}"})

    def stopped(self) -> None:
        """Notes that the user ended the training."""
        self._status = "KILLED"
        self._console.say(f"stopped; the same command with --logdir={self._config.logdir} goes on")

    def finish(self, test: Mapping[str, float]) -> None:
        """Records what the test set gave, at their "global_step": the training is complete."""
        step = int(test["global_step"])
        # A training that was complete before has these values already, at this very step.
        if step > self._step:
            names = ("cost", "accuracy")
            self.writer.scalars(step, {f"test/{name}": test[name] for name in names})
        self._status = "FINISHED"
        # Before the other tasks are told: who is started again finds them, or the mark.
        if self._checkpoint is not None:
            completion.write(self._config, self._checkpoint)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        if isinstance(error, (KeyboardInterrupt, Stopped)):
            self._status = "KILLED"
        logdir = self._config.logdir
        self._console.close()
        mlflow = tracking_command(logdir, self._config.tracking_uri)
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


def _tags(data: Dataset, server: Server | None) -> dict[str, str]:
    jobs = {} if server is None else server.cluster.as_dict()
    shape = ", ".join(f"{len(hosts)} {job}" for job, hosts in sorted(jobs.items()))
    return {
        "runtime": current_runtime().name,
        "cluster": shape or "one process",
        "tensorflow": _tensorflow.version(),
        "python": platform.python_version(),
        "git_commit": _git_commit(),
        "dataset": data.name,
        "dataset_source": data.source,
        "dataset_checksum": data.checksum,
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
