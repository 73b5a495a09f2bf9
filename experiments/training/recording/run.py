"""What an experiment's hooks are given, and what a run returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

import compat
from compat.errors import one_line
from compat.tracking import Writer
from compat.tracking.files import writing_to
from compat.tracking.tensorboard.eventfile import event_files, read_events
from experiments.evaluation import early_stopping
from experiments.evaluation.early_stopping import StopRequest
from experiments.training.recording.curve_tags import name_of


@dataclass(frozen=True)
class Run:
    """A run in progress, as a hook of the experiment sees it.

    Attributes:
      step: the global step at which the hook is called; what is written belongs to it.
      settings: of the experiment.
      session: runs steps and reads variables.
      writer: takes scalars, images, texts, histograms and figures, for TensorBoard and MLflow.
      logdir: the log folder.
      stop_requests: those that `stop` has made in this process.
    """

    step: int
    settings: Any
    session: compat.Session
    writer: Writer
    logdir: str
    stop_requests: list[StopRequest] = field(default_factory=list, repr=False)

    def stop(self, reason: str) -> None:
        """Ends the run early, in all its tasks, as early stopping does: saved, tested, complete.

        Updates that are being made are finished. From an evaluator, the chief receives it when it
        next logs a line, writes a summary, evaluates or saves.

        Args:
          reason: in a few words, for a line, MLflow's tag `early_stopping` and `Result.stopped`.

        Raises:
          UserError: the log folder cannot be written to.
        """
        found = StopRequest(self.step, 0, one_line(str(reason)))
        with writing_to(self.logdir):
            early_stopping.request(self.logdir, found)
        self.stop_requests.append(found)


@dataclass(frozen=True)
class Result:
    """What a complete run has reached.

    Attributes:
      step: the global step.
      metrics: of the last evaluation of each split, as "validation/loss" and "test/accuracy", and
        of the test split by the best checkpoint, as "best_test/accuracy".
      checkpoint: prefix of the last checkpoint, None if there is none.
      best_checkpoint: prefix of the best checkpoint by the monitor, None where none was chosen.
      run_id: of MLflow, None as long as its store has not taken the run.
      logdir: the log folder, of which `history` are the curves.
      stopped: why the run ended early, None if it did not.
    """

    step: int
    metrics: Mapping[str, float]
    checkpoint: str | None
    best_checkpoint: str | None
    run_id: str | None
    logdir: str
    stopped: str | None = None

    @property
    def history(self) -> dict[str, list[tuple[int, float]]]:
        """The curves of the run by name, as "train/loss": pairs of step and value.

        They are read from the log folder, so those of a run that was resumed are whole.
        """
        curves: dict[str, list[tuple[int, float]]] = {}
        for path in event_files(self.logdir):
            for _, event in read_events(path):
                for value in event.summary.value:
                    if value.WhichOneof("value") == "simple_value":
                        curve = curves.setdefault(name_of(value.tag), [])
                        curve.append((int(event.step), float(value.simple_value)))
        return curves
