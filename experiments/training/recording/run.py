"""What an experiment's hooks are given, and what a run returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

import compat
from compat.tracking import Writer
from compat.tracking.tensorboard.eventfile import event_files, read_events
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
    """

    step: int
    settings: Any
    session: compat.Session
    writer: Writer
    logdir: str


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
    """

    step: int
    metrics: Mapping[str, float]
    checkpoint: str | None
    best_checkpoint: str | None
    run_id: str | None
    logdir: str

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
