"""What the chief does between updates: lines, curves, measurements, checkpoints."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Mapping

import numpy as np

from compat import UserError
from compat.tracking import Console, Writer, step_line
from experiments.evaluation import early_stopping
from experiments.evaluation.best_checkpoint import step_of
from experiments.evaluation.early_stopping import StopRequest
from experiments.evaluation.history import Evaluation
from experiments.settings.config import Config
from experiments.settings.schedule import Schedule, due

Values = Mapping[str, float]


class DivergedError(UserError):
    """The cost is no number any more; the last good checkpoint stays."""

    exit_code = 1


def check_finite(values: Values, learning_rate: float) -> None:
    """Checks the cost of an update, on every task that trains.

    Raises:
      DivergedError: it is NaN or infinite.
    """
    if not math.isfinite(values["cost"]):
        raise DivergedError(
            f"cost is {values['cost']} at step {int(values['global_step'])}, expected a finite "
            f"number; the last good checkpoint stays; lower --learning_rate={learning_rate:g}"
        )


class Reporter:
    """Takes the values of updates as they come, and does what is due by the schedule.

    Args:
      config: how often to do what.
      schedule: the course of the training.
      step: the global step at which this process takes it up.
      writer: curves go here.
      console: lines go here.
      evaluate: measures on the validation split.
      save: writes a checkpoint; returns its prefix.
      read_weights: returns the weights, by name, and the first layer's as images.
      clock: seconds.
      select: given the checkpoint and the evaluation of each measurement, if the chief evaluates.

    Attributes:
      step: the global step that was seen last.
      cost: that of the batch, None before there is one.
      request: that somebody wants the training to end early, None as long as nobody does.
    """

    def __init__(
        self,
        config: Config,
        schedule: Schedule,
        step: int,
        writer: Writer,
        console: Console,
        evaluate: Callable[[], dict[str, float]],
        save: Callable[[], str],
        read_weights: Callable[[], Any],
        clock: Callable[[], float] = time.monotonic,
        select: Callable[[str, Evaluation], None] | None = None,
    ) -> None:
        self._config = config
        self._schedule = schedule
        self._writer = writer
        self._console = console
        self._evaluate = evaluate
        self._save = save
        self._read_weights = read_weights
        self._clock = clock
        self._select = select
        self.step = step
        self.cost: float | None = None
        self.request: StopRequest | None = None
        self._evaluated = step
        self._line_step = self._summary_step = step
        self._line_time = self._summary_time = clock()

    def report(self, values: Values) -> None:
        """Takes the values of one update.

        Workers' updates may arrive out of order; one that is older than the last is passed over,
        so that steps always increase.

        Raises:
          DivergedError: the cost is no number.
        """
        check_finite(values, self._config.learning_rate)
        before, after = self.step, int(values["global_step"])
        if after <= before:
            return
        self.step, self.cost = after, values["cost"]
        self._console.progress(after)
        measuring = due(self._config.eval_every or self._schedule.steps_per_epoch, before, after)
        saving = due(self._config.checkpoint_every, before, after)
        point_every = self._config.summary_every or self._schedule.steps_per_point
        summing_up = due(point_every, before, after)
        position = self._schedule.line(before, after)
        judging = self._select is not None and (saving or measuring)
        # First: who is killed in between has told nothing that is lost. While the chief makes one
        # update the others may make hundreds, so that `before` may be long ago.
        prefix = self._save() if saving or judging else None
        if position is not None:
            self._say_line(*position, values["cost"])
        if summing_up:
            self._write_summary(values)
        if measuring or judging:
            self.measure(prefix)
        if saving or measuring or summing_up or position is not None:
            # A file of the log folder, which may be another machine's: not at each update.
            self.request = early_stopping.read(self._config.logdir)

    def _say_line(self, epoch: int, batch: int, cost: float) -> None:
        now = self._clock()
        batches = (self.step - self._line_step) / self._schedule.num_workers
        average = 1000 * (now - self._line_time) / max(batches, 1)
        self._console.say(
            step_line(self.step, epoch, batch, self._schedule.batches_per_epoch, cost, average)
        )
        self._line_step, self._line_time = self.step, now

    def _write_summary(self, values: Values) -> None:
        now = self._clock()
        scalars = {
            f"train/{name}": value for name, value in values.items() if name != "global_step"
        }
        scalars["learning_rate"] = self._config.learning_rate
        seconds = now - self._summary_time
        if seconds > 0:
            scalars["steps_per_sec"] = (self.step - self._summary_step) / seconds
        self._summary_step, self._summary_time = self.step, now
        self._writer.scalars(self.step, scalars)

    def save(self) -> str:
        """Writes a checkpoint, and has it judged if the chief evaluates; returns its prefix."""
        prefix = self._save()
        if self._select is not None:
            self.measure(prefix)
        return prefix

    def measure(self, prefix: str | None = None) -> None:
        """Measures on the validation split, and shows the weights as they are now."""
        values = self._evaluate()
        step = int(values.pop("global_step"))
        if step <= self._evaluated:
            return
        self._evaluated = step
        curves = {f"validation/{name}": v for name, v in values.items()}
        self._writer.scalars(step, curves)
        weights, first_layer = self._read_weights()
        self._writer.histograms(step, {f"weights/{name}": array for name, array in weights.items()})
        self._writer.images(step, {"first_layer": as_images(first_layer)})
        if self._select is not None and prefix is not None:
            # Other workers may have made updates since; the checkpoint has the step of its name.
            self._select(prefix, Evaluation(step_of(prefix), curves))


def as_images(weights: np.ndarray, most: int = 16) -> np.ndarray:
    """Returns a layer's weights as grey images, one a unit.

    Args:
      weights: `[784, units]`, or `[height, width, 1, maps]`.
      most: how many units are shown.

    Returns:
      uint8 `[units, height, width, 1]`; the smallest weight of a unit is black, the largest white.
    """
    if weights.ndim == 2:
        weights = weights.reshape(28, 28, 1, -1)
    images = np.moveaxis(weights[..., :most], -1, 0)
    low = images.min(axis=(1, 2, 3), keepdims=True)
    high = images.max(axis=(1, 2, 3), keepdims=True)
    return np.round(255 * (images - low) / np.maximum(high - low, 1e-12)).astype(np.uint8)
