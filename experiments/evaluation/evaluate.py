"""Evaluates a model on a split that is too large for one batch."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Iterable, Mapping

import numpy as np

from compat import Session, Step, UserError, tf1
from compat.checkpoint import files
from compat.checkpoint.io import CheckpointIO
from compat.runtime.interface import Runtime
from compat.tracking import Writer
from experiments.evaluation import best_checkpoint

Values = Dict[str, float]
_GLOBAL_STEP = "global_step"
_ATTEMPTS = 10  # Workers poll for an early end every three seconds.


def evaluate(
    session: Session, step: Step, chunks: Iterable[tuple[Any, ...]], metrics: Mapping[str, Any]
) -> Values:
    """Returns the means of a step's scalars, the metrics, and "global_step", by name.

    A scalar, such as the loss, is a mean over the examples of a chunk, so chunks are weighted by
    their numbers of examples. If other workers train at the same time, the variables change between
    chunks; "global_step" is the one of the last chunk.

    Args:
      session: runs the step.
      step: a step for evaluation, which returns "examples" and "global_step" as well.
      chunks: the arguments for each call of the step. A step with a dataset may end before them.
      metrics: metrics by name; they are reset, and then hold the results of this evaluation.

    Raises:
      UserError: there are no examples, or a metric has the name of a scalar.
    """
    for metric in metrics.values():
        metric.reset()
    sums: dict[str, float] = {}
    examples = global_step = 0.0
    for chunk in chunks:
        session.check_overdue()
        try:
            outputs = {name: np.asarray(v) for name, v in session.run(step, *chunk).items()}
        except tf1.errors.OutOfRangeError:
            break
        count, global_step = (float(outputs.pop(name)) for name in ("examples", _GLOBAL_STEP))
        for name, value in outputs.items():
            if value.ndim == 0 and count:
                sums[name] = sums.get(name, 0.0) + count * float(value)
        for metric in metrics.values():
            metric.update(outputs)
        examples += count
    if not examples:
        raise UserError("there are no examples to evaluate on; give the split some")
    taken = sorted({*sums, _GLOBAL_STEP} & set(metrics))
    if taken:
        raise UserError(f"metric {taken[0]!r} has the name of a scalar of the step; choose another")
    names = sorted(sums, key=lambda name: (name != "loss", name))  # In a line, the loss is first.
    values = {name: sums[name] / examples for name in names}
    results = {name: metric.result() for name, metric in metrics.items()}
    values.update((name, float(value)) for name, value in results.items() if value is not None)
    return {**values, _GLOBAL_STEP: global_step}


def write_pictures(metrics: Mapping[str, Any], writer: Writer, step: int, split: str) -> None:
    """Records the pictures of the last evaluation, for metrics that have a method `write`."""
    for name, metric in metrics.items():
        if hasattr(metric, "write"):
            metric.write(writer, step, f"{split}/{name}")


def write_at_end(metrics: Mapping[str, Any], writer: Writer) -> None:
    """Records the last evaluation of the run, for metrics that have a method `write_at_end`."""
    for name, metric in metrics.items():
        if hasattr(metric, "write_at_end"):
            metric.write_at_end(writer, name)


def evaluate_best(
    session: Session,
    runtime: Runtime,
    logdir: str,
    evaluate: Callable[[], Values],
    say: Callable[[str], object],
) -> Values:
    """Evaluates the best checkpoint, and then restores the variables; returns the values by name.

    If there is no best checkpoint, the result is empty. The chief calls this at the end of a run.
    On the legacy runtime another worker may still make updates during the evaluation, which is then
    repeated. The variable of the global step is not changed, since other workers read it;
    "global_step" in the result is the step of the checkpoint.

    Args:
      session: runs the evaluation.
      runtime: the runtime that has the variables.
      logdir: the log folder of the run.
      evaluate: evaluates the current variables, and returns the values by name.
      say: receives a line if the checkpoint cannot be evaluated.
    """
    folder = os.path.join(logdir, best_checkpoint.FOLDER)
    own = runtime.variables()
    counter = {_GLOBAL_STEP: own.pop(_GLOBAL_STEP)}
    try:
        kept = CheckpointIO(folder).history()
        if not kept:
            return {}
        best = files.fitted(kept[-1], files.read(kept[-1]), own, runtime.slices(), others=True)
    except UserError as error:  # An evaluator may be replacing the checkpoint at this moment.
        say(f"the best checkpoint is not evaluated: {error}")
        return {}
    last = session.read(own)
    try:
        for _ in range(_ATTEMPTS):
            before = session.read(counter)
            session.assign(own, best)
            values = evaluate()
            if session.read(counter) == before:
                return {**values, _GLOBAL_STEP: float(best_checkpoint.step_of(kept[-1]))}
            time.sleep(1)
    finally:
        session.assign(own, last)
    say("the best checkpoint is not evaluated: other workers still make updates")
    return {}
