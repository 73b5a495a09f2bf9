"""The run that an experiment's hooks receive, and the result that a run returns."""

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
    """A run in progress, as a hook of the experiment receives it.

    Attributes:
      step: the global step at which the hook is called, for records that it writes.
      settings: the settings of the experiment.
      session: runs steps and reads variables.
      writer: writes scalars, images, texts, histograms and figures to TensorBoard and MLflow.
      logdir: the log folder.
      stop_requests: the requests that `stop` has made in this process.
    """

    step: int
    settings: Any
    session: compat.Session
    writer: Writer
    logdir: str
    stop_requests: list[StopRequest] = field(default_factory=list, repr=False)

    def stop(self, reason: str) -> None:
        """Ends the run early in all its tasks, like early stopping.

        Updates in progress are finished; then the run is saved, tested and complete. If an
        evaluator calls this, the chief notices it when it next logs a line, writes a summary,
        evaluates or saves.

        Args:
          reason: a few words for the log, MLflow's tag `early_stopping` and `Result.stopped`.

        Raises:
          UserError: the log folder cannot be written to.
        """
        found = StopRequest(self.step, 0, one_line(str(reason)))
        with writing_to(self.logdir):
            early_stopping.request(self.logdir, found)
        self.stop_requests.append(found)


@dataclass(frozen=True)
class Result:
    """The result of a complete run.

    Attributes:
      step: the global step at the end.
      metrics: the values of the last evaluation of each split, as "validation/loss" and
        "test/accuracy", and of the best checkpoint on the test split, as "best_test/accuracy".
      checkpoint: prefix of the last checkpoint, None if there is none.
      best_checkpoint: prefix of the best checkpoint by the monitor, None if none was kept.
      run_id: the id of the run in MLflow, None until MLflow's store has received the run.
      logdir: the log folder, whose curves `history` returns.
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
        """The curves of the run by name, as "train/loss", each a list of (step, value).

        They are read from the log folder, so they include the part before the run was resumed.
        """
        curves: dict[str, list[tuple[int, float]]] = {}
        for path in event_files(self.logdir):
            for _, event in read_events(path):
                for value in event.summary.value:
                    if value.WhichOneof("value") == "simple_value":
                        curve = curves.setdefault(name_of(value.tag), [])
                        curve.append((int(event.step), float(value.simple_value)))
        return curves
