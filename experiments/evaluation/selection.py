"""Model selection: keeps the best checkpoint of a run, and stops a run that no longer improves.

The same, whether the chief evaluates its own checkpoints or another process reads them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable

from compat.errors import UserError
from experiments.evaluation import best_checkpoint, early_stopping, history
from experiments.evaluation.early_stopping import StopRequest
from experiments.evaluation.history import MODES, Evaluation, History


@dataclass
class Selection:
    """Compares the evaluations of a run by a monitored value; a context manager.

    After `patience` evaluations in a row without an improvement the chief is requested to stop the
    run; 0: never.
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
        self.history = History(self.logdir, self.resume_step)

    def take(self, prefix: str, evaluation: Evaluation) -> None:
        """Takes the evaluation of a checkpoint, of a later step than the last.

        The history is written last: if the process is killed before, the next one evaluates again.
        """
        if self.monitor not in evaluation.values:
            raise UserError(
                f"monitor {self.monitor!r} is not a value of an evaluation; set monitor to one of "
                f"{', '.join(sorted(evaluation.values))}"
            )
        evaluations = [*self.history.evaluations, evaluation]
        is_best = history.best(evaluations, self.monitor, self.mode) is evaluation
        values = "".join(f",  {_title(k)}: {_number(v)}" for k, v in evaluation.values.items())
        self.say(f"Step: {evaluation.step}{values}{',  best' if is_best else ''}")
        try:
            if is_best:
                best_checkpoint.keep(prefix, os.path.join(self.logdir, best_checkpoint.FOLDER))
            self._stop_early(evaluations)
            self.history.append(evaluation)
        except OSError as error:
            reason = error.strerror or error
            self.say(f"the evaluation of {prefix} is not kept ({reason}); the run continues")

    def _stop_early(self, evaluations: list[Evaluation]) -> None:
        since = history.without_improvement(evaluations, self.monitor, self.mode)
        if not 0 < self.patience <= since or early_stopping.read(self.logdir) is not None:
            return
        best = history.best(evaluations, self.monitor, self.mode)
        if best is None:
            reason = f"{self.monitor} was not finite in {since} evaluations"
        else:
            value = _number(best.values[self.monitor])
            reason = (
                f"{self.monitor} did not improve on {value}, of step {best.step}, in {since} "
                "evaluations"
            )
        self.say(f"{reason}; requesting the chief to stop the run")
        request = StopRequest(evaluations[-1].step, self.patience, reason)
        early_stopping.request(self.logdir, request)

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.history.close()


def _title(name: str) -> str:
    """Returns the name of a value in a line: "validation/loss" is "Validation-Loss"."""
    return "-".join(word[:1].upper() + word[1:] for word in name.replace("/", " ").split())


def _number(value: float) -> str:
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3e}"
