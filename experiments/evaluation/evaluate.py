"""Evaluation of a model on a split that is too large for one batch."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

import numpy as np

from compat import Session, Step, UserError, tf1


def evaluate(
    session: Session, step: Step, chunks: Iterable[tuple[Any, ...]], metrics: Mapping[str, Any]
) -> dict[str, float]:
    """Returns the loss, the other scalar outputs and the metrics of a split, and `global_step`.

    Scalars are means over all examples. While other workers train, they update the variables
    between chunks; `global_step` is that of the last chunk.

    Args:
      session: where the model is.
      step: made of `experiments.training.step.evaluation_step`.
      chunks: the arrays that each call is given; it ends with them or with the step's own data.
      metrics: by name; see `experiments.evaluation.metrics`.

    Raises:
      UserError: there are no examples, or a metric has the name of another value.
    """
    sums: dict[str, float] = {}
    examples, values = 0.0, {}
    for arrays in chunks:
        try:
            values = session.run(step, *arrays)
        except tf1.errors.OutOfRangeError:
            break
        count = values["examples"]
        examples += count
        for name, value in values.items():
            if np.ndim(value) == 0 and name not in ("examples", "global_step"):
                sums[name] = sums.get(name, 0.0) + float(value) * count
        for metric in metrics.values():
            metric.update(values)
    if not examples:
        raise UserError("an evaluation split has no examples; give at least one, or leave it out")
    taken = sorted(set(metrics) & set(sums))
    if taken:
        raise UserError(f"metric {taken[0]!r} has the name of an output; choose another name")
    means = {name: total / examples for name, total in sums.items()}
    results = {name: float(metric.result()) for name, metric in metrics.items()}
    return {**means, **results, "global_step": values["global_step"]}
