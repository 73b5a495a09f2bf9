"""Does the chief's work between updates: lines, curves, evaluations, checkpoints and hooks."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Mapping

import numpy as np

from compat import UserError
from compat.tracking import Console, step_line
from experiments.evaluation import early_stopping
from experiments.evaluation.best_checkpoint import step_of
from experiments.evaluation.early_stopping import StopRequest
from experiments.evaluation.evaluate import write_pictures
from experiments.evaluation.selection import Evaluation, shown
from experiments.training.recording.callback import Callback
from experiments.training.recording.run import Run
from experiments.training.recording.schedule import Schedule, due

Values = Mapping[str, float]
_MOST_WEIGHTS = 1_000_000  # A larger variable, such as a table, has no histogram.
# The speed is measured over this time at least, since the modern runtime reports all updates that
# were made during an evaluation at once.
_RATE_SECS = 0.1
_SLOW_SECS = 2.0  # A shorter evaluation is not worth a line.


class DivergedError(UserError):
    """The loss is NaN or infinite; the last good checkpoint stays."""

    exit_code = 1


def check_finite(values: Values, learning_rate: float, loss_name: str = "loss") -> None:
    """Raises a `DivergedError` if the loss of an update is NaN or infinite."""
    if not math.isfinite(values["loss"]):
        raise DivergedError(
            f"{loss_name} is {values['loss']} at step {int(values['global_step'])}, expected a "
            "finite number; the last good checkpoint stays; lower "
            f"--learning_rate={learning_rate:g}, or see by --check_numerics whether loss() takes a "
            "logarithm, a root or a quotient of 0"
        )


def has_histogram(variable: Any) -> bool:
    """Whether a variable is small enough to be read for a histogram."""
    return 0 < (variable.shape.num_elements() or 0) <= _MOST_WEIGHTS


def named(split: str, values: Mapping[str, Any], loss_name: str) -> dict[str, Any]:
    """Returns values under the names of their curves, as "validation/accuracy"."""
    return {
        f"{split}/{loss_name if name == 'loss' else name}": value
        for name, value in values.items()
        if name != "global_step"
    }


@dataclass
class Reporter:
    """Receives the values of updates, and logs, evaluates and saves when the schedule says so."""

    experiment: Any
    schedule: Schedule
    run: Run  # The run that hooks receive; its writer receives the curves.
    console: Console
    callbacks: Callback
    measure: Callable[[], dict[str, float]] | None  # Evaluates on the validation split.
    write_checkpoint: Callable[[], str]  # Returns the prefix of the checkpoint.
    read_weights: Callable[[], Mapping[str, np.ndarray]]
    metrics: Mapping[str, Any] = field(default_factory=dict)  # The metrics that `measure` computes.
    # Called with the checkpoint, the values and the line of each evaluation, if the chief keeps the
    # best checkpoint.
    select: Callable[[str, Evaluation, str], None] | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.step = self.run.step  # The step of the last update that was reported.
        self.loss: float | None = None
        self.evaluated: dict[str, float] = {}  # The values of the last evaluation.
        self._values: Values = {}  # The values of the last update.
        self.request: StopRequest | None = None  # The request to end the run early.
        self.evaluated_step = self._line_step = self.step
        self._line_time = self._evaluated_time = self.clock()
        self._is_slow: bool | None = None  # Whether evaluations are slow; None before the first.
        self._rated = [(self._line_time, self.step)]  # Points from which speed is measured.

    @property
    def _eval_every(self) -> int:
        """Updates between two evaluations."""
        settings = self.run.settings
        every = settings.eval_every or self.schedule.steps_per_epoch or settings.checkpoint_every
        return int(every)

    def say_interval(self) -> None:
        """Logs how often a run is evaluated, if its epochs have no known length."""
        settings = self.run.settings
        evaluates = self.measure is not None or settings.early_stopping_patience
        if evaluates and self.schedule.steps_per_epoch is None and not settings.eval_every:
            self.console.say(
                f"an evaluation every {self._eval_every} updates, as --checkpoint_every says, and "
                "at the end, since the length of the stream is not known; --eval_every changes that"
            )

    def report(self, values: Values) -> None:
        """Receives the values of one update, and does what the schedule says is due after it."""
        settings, schedule = self.run.settings, self.schedule
        check_finite(values, settings.learning_rate, self.experiment.loss_name)
        before, after = self.step, int(values["global_step"])
        if after <= before:  # Updates may arrive out of order, but steps in the record increase.
            return
        self.step, self.loss, self._values = after, values["loss"], values
        self.console.progress(after)
        evaluating = self.measure is not None and due(self._eval_every, before, after)
        saving = due(settings.checkpoint_every, before, after)
        writing = due(settings.summary_every or schedule.steps_per_point, before, after)
        position = schedule.line(before, after)
        every = saving and bool(settings.eval_in_chief)
        selecting = self.select is not None and (every or evaluating)
        # The checkpoint is written first: if the process is killed later, it has reported nothing
        # that is lost. `before` may be hundreds of updates ago, if other workers are faster.
        prefix = self.write_checkpoint() if self.saves(before, after) else None
        line = "" if position is None else self._line(*position, values["loss"])
        if line and not (evaluating or selecting):
            self.console.say(line)
        if writing:
            self._write_summary(values)
        self.callbacks.on_step(replace(self.run, step=after), values)
        if evaluating or selecting:
            self.evaluate(prefix, line)
        # Not at each update, as it reads a file of the log folder, which may be on another machine.
        if saving or evaluating or writing or position is not None or self.run.stop_requests:
            self.read_request()

    def saves(self, before: int, after: int) -> bool:
        """Whether a checkpoint is due between two steps, of itself or for an evaluation."""
        evaluating = self.select is not None and self.measure is not None
        return due(self.run.settings.checkpoint_every, before, after) or (
            evaluating and due(self._eval_every, before, after)
        )

    def read_request(self) -> None:
        """Reads the request to end the run early, if there is one, from the log folder."""
        self.request = early_stopping.read(self.run.logdir)

    def _line(self, epoch: int, batch: int, loss: float) -> str:
        now = self.clock()
        batches = (self.step - self._line_step) / self.schedule.num_workers
        average = 1000 * (now - self._line_time) / max(batches, 1)
        name, total = self.experiment.loss_name, self.schedule.batches_per_epoch
        self._line_step, self._line_time = self.step, now
        return step_line(self.step, epoch, batch, total, loss, average, name)

    def _write_summary(self, values: Values) -> None:
        now = self.clock()
        apart = ("learning_rate", "examples_seen")  # examples_seen counts only this worker's.
        others = {name: v for name, v in values.items() if name not in apart}
        scalars = named("train", others, self.experiment.loss_name)
        scalars["learning_rate"] = values.get("learning_rate", self.run.settings.learning_rate)
        while len(self._rated) > 1 and now - self._rated[1][0] >= _RATE_SECS:
            del self._rated[0]
        since, step = self._rated[0]
        if now > since:
            scalars["steps_per_sec"] = (self.step - step) / (now - since)
        self._rated.append((now, self.step))
        self.run.writer.scalars(self.step, scalars)

    def evaluate(self, prefix: str | None = None, line: str = "") -> None:
        """Evaluates the current weights.

        Args:
          prefix: prefix of a checkpoint that was just written with these weights, if any.
          line: the line of the last update. The values are printed after it if they are of the same
            step.
        """
        begun = self.clock()
        values = {} if self.measure is None else self.measure()
        # Other workers may have made updates since the checkpoint, whose step is in its name.
        step = int(values.pop("global_step", -1))
        found = step if prefix is None else step_of(prefix)
        if line and (step <= self.evaluated_step or found != self.step):
            self.console.say(line)
            line = ""
        if step <= self.evaluated_step:
            return
        self.evaluated_step = step
        self.evaluated = named("validation", values, self.experiment.loss_name)
        self.run.writer.scalars(step, self.evaluated)
        self.run.writer.charts(self._charts())
        write_pictures(self.metrics, self.run.writer, step, "validation")
        weights = self.read_weights().items()
        self.run.writer.histograms(step, {f"weights/{name}": v for name, v in weights})
        self.callbacks.on_evaluation(replace(self.run, step=step), self.evaluated)
        if self.select is not None and prefix is not None:
            self.select(prefix, Evaluation(found, self.evaluated), line)
        else:
            self.console.say(f"{line or f'Step: {found}'}{shown(self.evaluated)}")
        self._say_if_slow(begun)

    def _say_if_slow(self, begun: float) -> None:
        """Logs once that evaluations take longer than the updates between them."""
        between, now = begun - self._evaluated_time, self.clock()
        self._evaluated_time = now
        if self._is_slow is False and now - begun > max(between, _SLOW_SECS):
            self.console.say(
                f"an evaluation took {now - begun:.0f} s, the updates before it {between:.0f} s; "
                "--eval_every makes fewer, --evaluator makes them in a process beside a cluster"
            )
            self._is_slow = True
        self._is_slow = bool(self._is_slow)  # The first evaluation is slow, as it has to be built.

    def losses(self) -> dict[str, float]:
        """Returns the last loss of the validation or, without one, of a batch, by a title."""
        evaluated = self.evaluated.get(f"validation/{self.experiment.loss_name}")
        if evaluated is not None:
            return {f"validation, step {self.evaluated_step}": evaluated}
        return {} if self.loss is None else {f"one batch, step {self.step}": self.loss}

    def _charts(self) -> dict[str, list[str]]:
        """Returns the curves of each chart: those of one value for training and validation."""
        trained = named("train", self._values, self.experiment.loss_name)
        charts: dict[str, list[str]] = {}
        for curve in sorted(self.evaluated):
            name = curve.partition("/")[2]
            charts[name] = [f"train/{name}", curve] if f"train/{name}" in trained else [curve]
        return charts
