"""Model selection: keeps the best checkpoint of a run, and stops a run that no longer improves.

The same, whether the chief evaluates its own checkpoints or another process reads them.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from compat.errors import UserError
from experiments.evaluation import best_checkpoint, early_stopping, history
from experiments.evaluation.early_stopping import StopRequest
from experiments.evaluation.history import MODES, Evaluation, History


class Selection:
    """Compares the evaluations of a run by a monitored value; a context manager.

    Args:
      logdir: the log folder.
      monitor: the name of the value, as "validation/loss".
      mode: whether a better value is greater ("max") or smaller ("min").
      patience: evaluations in a row without an improvement after which the chief is requested to
        stop the run; 0: never.
      resume_step: as for `experiments.evaluation.history.History`.
      say: takes a line for the user.

    Raises:
      UserError: the mode is unknown, another process evaluates this run, or the folder cannot be
        written to.
    """

    def __init__(
        self,
        logdir: str,
        monitor: str,
        mode: str,
        patience: int,
        resume_step: int,
        say: Callable[[str], object] = print,
    ) -> None:
        if mode not in MODES:
            raise UserError(
                f"mode {mode!r} does not say whether a greater or a smaller {monitor} is better; "
                "set mode to 'max' or 'min'"
            )
        self._logdir = logdir
        self._monitor = monitor
        self._mode = mode
        self._patience = patience
        self._say = say
        self._history = History(logdir, resume_step)

    @property
    def last_step(self) -> int:
        """The step of the last evaluation, over all restarts; -1 if there is none."""
        return self._history.last_step

    def take(self, prefix: str, evaluation: Evaluation) -> None:
        """Takes the evaluation of a checkpoint, of a later step than the last.

        The history is written last: if the process is killed before, the next one evaluates again.

        Raises:
          UserError: the monitored value is not among those of the evaluation.
        """
        if self._monitor not in evaluation.values:
            raise UserError(
                f"monitor {self._monitor!r} is not a value of an evaluation; set monitor to one of "
                f"{', '.join(sorted(evaluation.values))}"
            )
        evaluations = [*self._history.evaluations, evaluation]
        is_best = history.best(evaluations, self._monitor, self._mode) is evaluation
        values = "".join(f",  {_title(k)}: {_number(v)}" for k, v in evaluation.values.items())
        self._say(f"Step: {evaluation.step}{values}{',  best' if is_best else ''}")
        try:
            if is_best:
                best_checkpoint.keep(prefix, os.path.join(self._logdir, best_checkpoint.FOLDER))
            self._stop_early(evaluations)
            self._history.append(evaluation)
        except OSError as error:
            reason = error.strerror or error
            self._say(f"the evaluation of {prefix} is not kept ({reason}); the run continues")

    def _stop_early(self, evaluations: list[Evaluation]) -> None:
        since = history.without_improvement(evaluations, self._monitor, self._mode)
        if not 0 < self._patience <= since or early_stopping.read(self._logdir) is not None:
            return
        best = history.best(evaluations, self._monitor, self._mode)
        if best is None:
            reason = f"{self._monitor} was not finite in {since} evaluations"
        else:
            value = _number(best.values[self._monitor])
            reason = (
                f"{self._monitor} did not improve on {value}, of step {best.step}, in {since} "
                "evaluations"
            )
        self._say(f"{reason}; requesting the chief to stop the run")
        request = StopRequest(evaluations[-1].step, self._patience, reason)
        early_stopping.request(self._logdir, request)

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Frees the log folder for another process that evaluates."""
        self._history.close()


def _title(name: str) -> str:
    """Returns the name of a value in a line: "validation/loss" is "Validation-Loss"."""
    return "-".join(word[:1].upper() + word[1:] for word in name.replace("/", " ").split())


def _number(value: float) -> str:
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3e}"
