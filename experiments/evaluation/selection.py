"""Model selection: keeps the best checkpoint of a run, and stops a run that no longer improves.

The same, whether the chief evaluates its own checkpoints or another process reads them. The
evaluations are kept in the log folder over all restarts: `evaluations.jsonl` has one of them a
line, steps increasing:

    {"step": 500, "validation/loss": 0.31, "validation/recall": 0.91}

The best checkpoint, and the number of evaluations since, are functions of these lines alone. NaN
and infinity are written as the strings "nan", "inf" and "-inf", so that each line is valid JSON.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Sequence

from compat.errors import UserError, reason_of
from compat.tracking.files import BusyError, lock, writing_to
from experiments.evaluation import best_checkpoint, early_stopping

FILE = "evaluations.jsonl"
MODES = ("max", "min")
# Seconds to wait for the lock: a process that was killed holds it for a moment.
_PATIENCE = 2.0


@dataclass(frozen=True)
class Evaluation:
    """The values of one checkpoint, by the names of their curves; may be NaN or infinite."""

    step: int  # Of the checkpoint: asynchronous workers do not wait for its evaluation.
    values: Mapping[str, float]


def best(evaluations: Sequence[Evaluation], monitor: str, mode: str) -> Evaluation | None:
    """Returns the earliest of those with the best finite value of the monitor; None without any."""
    sign = {"max": 1, "min": -1}[mode]
    finite = [e for e in evaluations if math.isfinite(e.values.get(monitor, math.nan))]
    return max(finite, key=lambda evaluation: sign * evaluation.values[monitor], default=None)


def read(logdir: str) -> list[Evaluation]:
    """Returns the evaluations in a log folder so far; none where nothing was evaluated."""
    try:
        return [evaluation for evaluation, _ in _read(os.path.join(logdir, FILE))]
    except OSError:
        return []


def without_improvement(evaluations: Sequence[Evaluation], monitor: str, mode: str) -> int:
    """Returns how many have come after the best one; all of them where there is no best."""
    found = best(evaluations, monitor, mode)
    return sum(found is None or evaluation.step > found.step for evaluation in evaluations)


@dataclass
class Selection:
    """Compares the evaluations of a run by a monitored value; a context manager.

    After `patience` evaluations in a row without an improvement the chief is requested to stop the
    run; 0: never. Evaluations after `resume_step`, where the run resumes, are removed; -1: all.
    """

    logdir: str
    monitor: str
    mode: str
    patience: int
    resume_step: int
    say: Callable[[str], object] = print

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UserError(
                f"mode {self.mode!r} does not say whether a greater or a smaller {self.monitor} is "
                "better; set mode to 'max' or 'min'"
            )
        path = os.path.join(self.logdir, FILE)
        with writing_to(self.logdir):
            self._file = lock(
                path,
                f"the run in {self.logdir} is evaluated by another process; expected one evaluator "
                "a run, or --eval_in_chief; end that process or give another --logdir",
                patience=_PATIENCE,
            )
            self.evaluations = []
            end = 0
            for evaluation, behind in _read(path):
                if evaluation.step > self.resume_step:
                    break
                self.evaluations.append(evaluation)
                end = behind
            # Steps increase, so what stays is the beginning; a line that was torn goes as well.
            self._file.truncate(end)

    @property
    def last_step(self) -> int:
        """The step of the last evaluation, over all restarts; -1 if there is none."""
        return self.evaluations[-1].step if self.evaluations else -1

    def take(self, prefix: str, evaluation: Evaluation, line: str = "") -> None:
        """Takes the evaluation of a checkpoint, of a later step than the last.

        A line shows its values, behind `line` or the step.
        """
        if self.monitor not in evaluation.values:
            raise UserError(
                f"monitor {self.monitor!r} is not a value of an evaluation; set monitor to one of "
                f"{', '.join(sorted(evaluation.values))}"
            )
        evaluations = [*self.evaluations, evaluation]
        is_best = best(evaluations, self.monitor, self.mode) is evaluation
        line = line or f"Step: {evaluation.step}"
        self.say(f"{line}{shown(evaluation.values)}{',  best' if is_best else ''}")
        try:
            if is_best:
                best_checkpoint.keep(prefix, os.path.join(self.logdir, best_checkpoint.FOLDER))
            self._stop_early(evaluations)
            # Last: if the process is killed before, the next one evaluates again.
            self.append(evaluation)
        except OSError as error:
            reason = reason_of(error)
            self.say(f"the evaluation of {prefix} is not kept ({reason}); the run continues")

    def append(self, evaluation: Evaluation) -> None:
        """Adds an evaluation, also where an `OSError` says that its line is not kept."""
        self.evaluations.append(evaluation)
        values = {k: v if math.isfinite(v) else str(v) for k, v in evaluation.values.items()}
        self._file.write((json.dumps({"step": evaluation.step, **values}) + "\n").encode())

    def _stop_early(self, evaluations: list[Evaluation]) -> None:
        since = without_improvement(evaluations, self.monitor, self.mode)
        if not 0 < self.patience <= since or early_stopping.read(self.logdir) is not None:
            return
        found = best(evaluations, self.monitor, self.mode)
        if found is None:
            reason = f"{self.monitor} was not finite in {since} evaluations"
        else:
            value = _number(found.values[self.monitor])
            reason = (
                f"{self.monitor} did not improve on {value}, of step {found.step}, in {since} "
                "evaluations"
            )
        self.say(f"{reason}; requesting the chief to stop the run")
        request = early_stopping.StopRequest(evaluations[-1].step, self.patience, reason)
        early_stopping.request(self.logdir, request)

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the log folder for another process that evaluates."""
        self._file.close()


def _read(path: str) -> Iterator[tuple[Evaluation, int]]:
    """Yields evaluations and the offsets behind them, up to a line that is torn or out of order."""
    end, last = 0, -1
    with open(path, "rb") as file:
        for line in file:
            try:
                fields = json.loads(line.decode())
                step = int(fields.pop("step"))
                values = {name: float(value) for name, value in fields.items()}
            except (ValueError, TypeError, LookupError, AttributeError):
                return
            except (OverflowError, RecursionError):  # Of 1e999, and of ten thousand brackets.
                return
            if step <= last or not values or not line.endswith(b"\n"):
                return
            end, last = end + len(line), step
            yield Evaluation(step, values), end


def shown(values: Mapping[str, float]) -> str:
    """Returns the values of an evaluation as the rest of a line.

    >>> shown({"validation/loss": 0.25})
    ',  Validation-Loss: 0.2500'
    """
    return "".join(f",  {_title(name)}: {_number(value)}" for name, value in values.items())


@dataclass
class ChiefSelection:
    """Compares the evaluations of a chief as long as no other process evaluates the run.

    An evaluator may be started by hand at any time. So the log folder is held only while an
    evaluation is taken, and left to another process that holds it.

    Attributes:
      open: returns the selection of the run, given the step after which evaluations are removed.
      resume_step: where the run resumes; -1 for a new one.
      say: receives lines for the user.
    """

    open: Callable[[int], Selection]
    resume_step: int
    say: Callable[[str], object] = print

    def __post_init__(self) -> None:
        self._is_left = False
        selection = self._opened()  # What is wrong is found before the training.
        if selection is not None:
            selection.close()

    def take(self, prefix: str, evaluation: Evaluation, line: str = "") -> None:
        """See `Selection.take`."""
        selection = None if self._is_left else self._opened()
        if selection is None:
            self.say(f"{line or f'Step: {evaluation.step}'}{shown(evaluation.values)}")
            return
        self.resume_step = evaluation.step
        with selection:
            selection.take(prefix, evaluation, line)

    def _opened(self) -> Selection | None:
        try:
            return self.open(self.resume_step)
        except BusyError:
            self._is_left = True
            self.say("another process evaluates this run's checkpoints, and keeps the best")
            return None


def _title(name: str) -> str:
    """Returns the name of a value in a line: "validation/loss" is "Validation-Loss"."""
    return "-".join(word[:1].upper() + word[1:] for word in name.replace("/", " ").split())


def _number(value: float) -> str:
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3e}"
