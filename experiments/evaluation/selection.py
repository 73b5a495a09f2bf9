"""Model selection: of the checkpoints of a training the best one, and an end when none gets better.

The same, whether the chief evaluates at its own checkpoints or another process reads them.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from experiments.evaluation import best_checkpoint, history, stop_request
from experiments.evaluation.history import Evaluation, History
from experiments.evaluation.stop_request import StopRequest


class Selection:
    """Judges the evaluations of a training by their accuracy; a context manager.

    Args:
      logdir: the log folder.
      patience: evaluations in a row without an improvement after which the chief is asked to end
        the training; 0: never.
      resume_step: as for `experiments.evaluation.history.History`.
      say: takes a line for the user.

    Raises:
      UserError: another process evaluates this training, or the folder cannot be written to.
    """

    def __init__(
        self, logdir: str, patience: int, resume_step: int, say: Callable[[str], object] = print
    ) -> None:
        self._logdir = logdir
        self._patience = patience
        self._say = say
        self._history = History(logdir, resume_step)

    @property
    def last_step(self) -> int:
        """The step of the last evaluation, over all restarts; -1 if there is none."""
        return self._history.last_step

    def take(self, prefix: str, evaluation: Evaluation) -> None:
        """Takes the evaluation of a checkpoint, of a later step than the last.

        It is noted last: of a process that is killed before, the next one evaluates again.
        """
        all_of_them = [*self._history.evaluations, evaluation]
        is_best = history.best(all_of_them) is evaluation
        self._say(
            f"Step: {evaluation.step},  Validation-Cost: {evaluation.cost:.4f},"
            f"  Validation-Accuracy: {evaluation.accuracy:.4f}{',  best' if is_best else ''}"
        )
        try:
            if is_best:
                best_checkpoint.keep(prefix, os.path.join(self._logdir, best_checkpoint.FOLDER))
            self._ask_to_stop(all_of_them)
            self._history.append(evaluation)
        except OSError as error:
            reason = error.strerror or error
            self._say(f"the evaluation of {prefix} is not kept ({reason}); the training goes on")

    def _ask_to_stop(self, all_of_them: list[Evaluation]) -> None:
        in_vain = history.without_improvement(all_of_them)
        best = history.best(all_of_them)
        if best is None or not 0 < self._patience <= in_vain:
            return
        if stop_request.read(self._logdir) is not None:
            return  # The chief is on its way.
        reason = (
            f"validation accuracy {best.accuracy:.4f} of step {best.step} was not exceeded in "
            f"{in_vain} evaluations"
        )
        self._say(f"{reason}; asking the chief to end the training")
        request = StopRequest(all_of_them[-1].step, self._patience, reason)
        stop_request.write(self._logdir, request)

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Frees the log folder for another process that evaluates."""
        self._history.close()
