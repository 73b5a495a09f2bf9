"""The evaluations of a run, kept in its log folder over all restarts.

`evaluations.jsonl` has one of them a line, steps increasing:

    {"step": 500, "validation/loss": 0.31, "validation/recall": 0.91}

The best checkpoint, and the number of evaluations since, are functions of these lines alone. NaN
and infinity are written as the strings "nan", "inf" and "-inf", so that each line is valid JSON.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

from compat.errors import UserError
from compat.tracking.files import lock

FILE = "evaluations.jsonl"
MODES = ("max", "min")
# Seconds to wait for the lock: a process that was killed holds it for a moment.
_PATIENCE = 2.0
# Lines of releases before the monitor had a name.
_OLD_NAMES = {"cost": "validation/loss", "accuracy": "validation/accuracy"}


@dataclass(frozen=True)
class Evaluation:
    """The values of one checkpoint, by the names of their curves; may be NaN or infinite.

    Its step may be less than that at the end of its evaluation: asynchronous workers do not wait.
    """

    step: int
    values: Mapping[str, float]


def best(evaluations: Sequence[Evaluation], monitor: str, mode: str) -> Evaluation | None:
    """Returns the earliest of those with the best finite value of the monitor; None without any.

    >>> evaluations = [Evaluation(1, {"loss": 2.0}), Evaluation(2, {"loss": float("nan")})]
    >>> best(evaluations, "loss", "min").step
    1
    """
    sign = {"max": 1, "min": -1}[mode]
    finite = [e for e in evaluations if math.isfinite(e.values.get(monitor, math.nan))]
    return max(finite, key=lambda evaluation: sign * evaluation.values[monitor], default=None)


def without_improvement(evaluations: Sequence[Evaluation], monitor: str, mode: str) -> int:
    """Returns how many have come after the best one; all of them where there is no best."""
    found = best(evaluations, monitor, mode)
    return sum(found is None or evaluation.step > found.step for evaluation in evaluations)


class History:
    """The evaluations of one run, oldest first, to which one process adds."""

    def __init__(self, logdir: str, resume_step: int) -> None:
        """Opens the file; a `UserError` says why it cannot, as for another process's evaluations.

        Evaluations after `resume_step` are removed, as the run that resumes there does not have
        their checkpoints any more; -1 keeps none.
        """
        path = os.path.join(logdir, FILE)
        try:
            os.makedirs(logdir, exist_ok=True)
            self._file = lock(
                path,
                f"the run in {logdir} is evaluated by another process; expected one evaluator "
                "a run, or --eval_in_chief; end that process or give another --logdir",
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
        """Adds an evaluation of a later step, also where an `OSError` says that it is not kept."""
        self.evaluations.append(evaluation)
        values = {k: v if math.isfinite(v) else str(v) for k, v in evaluation.values.items()}
        self._file.write((json.dumps({"step": evaluation.step, **values}) + "\n").encode())

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
                values = {_OLD_NAMES.get(k, k): float(v) for k, v in fields.items()}
            except (ValueError, TypeError, LookupError, AttributeError):
                return
            except (OverflowError, RecursionError):  # Of 1e999, and of ten thousand brackets.
                return
            if step <= last or not values or not line.endswith(b"\n"):
                return
            end, last = end + len(line), step
            yield Evaluation(step, values), end
