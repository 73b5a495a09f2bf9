"""Model selection: keeps the best checkpoint of a run, and stops a run that no longer improves.

It works in the same way if the chief evaluates its own checkpoints and if another process does. The
evaluations are kept in the log folder over all restarts: `evaluations.jsonl` has a line for each,
in the order of their steps:

    {"step": 500, "validation/loss": 0.31, "validation/recall": 0.91}

These lines alone determine the best checkpoint, and how many evaluations have followed it. NaN and
infinity are written as the strings "nan", "inf" and "-inf", so that each line is valid JSON.
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
# Seconds to wait for the lock, which a process that is being killed holds for a moment.
_PATIENCE = 2.0


@dataclass(frozen=True)
class Evaluation:
    """The values of one checkpoint, by the names of their curves; they may be NaN or infinite."""

    step: int  # The step of the checkpoint; asynchronous workers train on during the evaluation.
    values: Mapping[str, float]


def best(evaluations: Sequence[Evaluation], monitor: str, mode: str) -> Evaluation | None:
    """Returns the first evaluation with the best finite value of the monitor; None without any."""
    sign = {"max": 1, "min": -1}[mode]
    finite = [e for e in evaluations if math.isfinite(e.values.get(monitor, math.nan))]
    return max(finite, key=lambda evaluation: sign * evaluation.values[monitor], default=None)


def read(logdir: str) -> list[Evaluation]:
    """Returns the evaluations in a log folder so far."""
    try:
        return [evaluation for evaluation, _ in _read(os.path.join(logdir, FILE))]
    except OSError:
        return []


def without_improvement(evaluations: Sequence[Evaluation], monitor: str, mode: str) -> int:
    """Returns the number of evaluations after the best one; of all if none has a finite value."""
    found = best(evaluations, monitor, mode)
    return sum(found is None or evaluation.step > found.step for evaluation in evaluations)


@dataclass
class Selection:
    """Compares the evaluations of a run by a monitored value; a context manager.

    Attributes:
      logdir: the log folder, in which only one process at a time may have a selection.
      monitor: the name of the value.
      mode: "max" or "min", the better end of the value.
      patience: the number of evaluations in a row without an improvement after which the chief is
        requested to stop the run; 0 for never.
      resume_step: the step from which the run resumes. Later evaluations are removed; -1 removes
        all.
      say: receives lines for the user.

    Raises:
      UserError: the mode is not valid, or another process evaluates the run.
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
            # Steps increase, so the rest of the file is removed, with a line that is incomplete.
            self._file.truncate(end)

    @property
    def last_step(self) -> int:
        """The step of the last evaluation, over all restarts; -1 if there is none."""
        return self.evaluations[-1].step if self.evaluations else -1

    def take(self, prefix: str, evaluation: Evaluation, line: str = "") -> None:
        """Adds the evaluation of a checkpoint; its step must be later than `last_step`.

        If the evaluation is the best so far, the checkpoint is copied. The values are printed after
        `line`, or after the step if `line` is empty. Raises a `UserError` if the evaluation has no
        value of the monitor.
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
            # Written last: if the process is killed before, the next process evaluates again.
            self.append(evaluation)
        except OSError as error:
            reason = reason_of(error)
            self.say(f"the evaluation of {prefix} is not kept ({reason}); the run continues")

    def append(self, evaluation: Evaluation) -> None:
        """Adds an evaluation, and then writes its line, which may raise an `OSError`."""
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
        """Unlocks the log folder, so that another process may evaluate the run."""
        self._file.close()


def _read(path: str) -> Iterator[tuple[Evaluation, int]]:
    """Yields each evaluation, and the offset in the file at which its line ends.

    Stops at a line that is not valid or is incomplete, or whose step does not increase.
    """
    end, last = 0, -1
    with open(path, "rb") as file:
        for line in file:
            try:
                fields = json.loads(line.decode())
                step = int(fields.pop("step"))
                values = {name: float(value) for name, value in fields.items()}
            except (ValueError, TypeError, LookupError, AttributeError):
                return
            except (OverflowError, RecursionError):  # For 1e999, and for ten thousand brackets.
                return
            if step <= last or not values or not line.endswith(b"\n"):
                return
            end, last = end + len(line), step
            yield Evaluation(step, values), end


def shown(values: Mapping[str, float]) -> str:
    """Returns the values of an evaluation as text that is appended to a line.

    >>> shown({"validation/loss": 0.25})
    ',  Validation-Loss: 0.2500'
    """
    return "".join(f",  {_title(name)}: {_number(value)}" for name, value in values.items())


@dataclass
class ChiefSelection:
    """Compares the evaluations of a chief as long as no other process evaluates the run.

    An evaluator may be started by hand at any time. So the chief locks the log folder only while it
    adds an evaluation. Once another process has locked it, the chief only prints its evaluations.

    Attributes:
      open: returns the selection of the run, given the step after which evaluations are removed.
      resume_step: the step from which the run resumes; -1 for a new run.
      say: receives lines for the user.
    """

    open: Callable[[int], Selection]
    resume_step: int
    say: Callable[[str], object] = print

    def __post_init__(self) -> None:
        self._is_left = False
        selection = self._opened()  # So that errors are raised before the training.
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
