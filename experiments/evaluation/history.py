"""What the evaluations of a training have shown, kept in its log folder over all restarts.

`evaluations.jsonl` has one of them a line, steps increasing:

    {"step": 500, "cost": 0.31, "accuracy": 0.91}

Which checkpoint is the best, and for how long none was better, follows from them alone.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Iterator, Sequence

from compat.errors import UserError
from compat.tracking.lock import lock

FILE = "evaluations.jsonl"
# Seconds to wait for the lock: a process that was killed holds it for a moment.
_PATIENCE = 2.0


@dataclass(frozen=True)
class Evaluation:
    """What the validation split gave.

    Attributes:
      step: the global step of the weights.
      cost: in nats per example.
      accuracy: in [0, 1].
    """

    step: int
    cost: float
    accuracy: float


def best(evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """Returns the first of those with the highest accuracy; None of none.

    >>> best([Evaluation(1, 2.0, 0.5), Evaluation(2, 1.0, 0.9), Evaluation(3, 0.5, 0.9)]).step
    2
    """
    return max(evaluations, key=lambda evaluation: evaluation.accuracy, default=None)


def without_improvement(evaluations: Sequence[Evaluation]) -> int:
    """Returns how many have come after the best one.

    >>> without_improvement([Evaluation(1, 1.0, 0.9), Evaluation(2, 2.0, 0.5)])
    1
    """
    found = best(evaluations)
    return 0 if found is None else len(evaluations) - 1 - list(evaluations).index(found)


class History:
    """The evaluations of one training, to which one process adds.

    Attributes:
      evaluations: all of them, oldest first.
    """

    def __init__(self, logdir: str, resume_step: int) -> None:
        """Opens the file.

        Args:
          logdir: the log folder, made if there is none.
          resume_step: the step of the checkpoint that is there; later evaluations are of a training
            that was cut off and are removed. -1 keeps none.

        Raises:
          UserError: another process evaluates this training, or the folder cannot be written to.
        """
        path = os.path.join(logdir, FILE)
        try:
            os.makedirs(logdir, exist_ok=True)
            self._file = lock(
                path,
                f"the training in {logdir} is evaluated by another process; expected one evaluator "
                "a training, or --eval_in_chief; end that process or give another --logdir",
                patience=_PATIENCE,
            )
            self.evaluations = []
            end = 0
            for evaluation, behind in _read(path):
                if evaluation.step > resume_step:
                    break
                self.evaluations.append(evaluation)
                end = behind
            # Steps increase, so what stays is the beginning; a line that was torn goes as well.
            self._file.truncate(end)
        except OSError as error:
            raise UserError(
                f"log folder {logdir} cannot be written to ({error.strerror}); "
                "choose another with --logdir"
            ) from error

    @property
    def last_step(self) -> int:
        """The step of the last evaluation; -1 if there is none."""
        return self.evaluations[-1].step if self.evaluations else -1

    def append(self, evaluation: Evaluation) -> None:
        """Adds an evaluation of a later step.

        Raises:
          OSError: it cannot be written; it is among `evaluations` nevertheless.
        """
        self.evaluations.append(evaluation)
        self._file.write((json.dumps(asdict(evaluation)) + "\n").encode())

    def close(self) -> None:
        """Frees the log folder for another process that evaluates."""
        self._file.close()


def _read(path: str) -> Iterator[tuple[Evaluation, int]]:
    """Yields each evaluation with the offset behind it, up to what is none or of no later step."""
    end, last = 0, -1
    with open(path, "rb") as file:
        for line in file:
            try:
                fields = json.loads(line.decode())
                evaluation = Evaluation(
                    int(fields["step"]), float(fields["cost"]), float(fields["accuracy"])
                )
            except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
                return
            is_one = evaluation.step > last and 0 <= evaluation.accuracy <= 1
            if not is_one or not line.endswith(b"\n"):
                return
            end, last = end + len(line), evaluation.step
            yield evaluation, end
