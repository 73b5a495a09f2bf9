"""Base classes of metrics, which read outputs and weights by name and check their shapes."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, Collection, Mapping, Sequence

import numpy as np

from compat.errors import UserError

Outputs = Mapping[str, np.ndarray]


def metrics_of(experiment: Any) -> Mapping[str, Any]:
    """Returns the metrics of an experiment by name; raises a `UserError` if one is not a metric."""
    found = experiment.metrics()
    example = "{'accuracy': Accuracy()}"
    if not isinstance(found, Mapping):
        kind = type(found).__name__
        raise UserError(f"metrics() returned {kind}; return a dict by name, such as {example}")
    for name, metric in found.items():
        if isinstance(metric, type):
            kind = metric.__name__
            raise UserError(f"metric {name!r} of metrics() is a class; return {kind}()")
        missing = [m for m in ("reset", "update", "result") if not hasattr(metric, m)]
        if missing:
            raise UserError(
                f"metric {name!r} of metrics() is a {type(metric).__name__}, which has no "
                f"{missing[0]}(); return one of experiments.evaluation.metrics, such as {example}"
            )
    return found


class Metric(abc.ABC):
    """A value that is computed from the outputs for all chunks of a split."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets all chunks."""
        self._sum = self._weight = 0.0  # Sums over all examples.

    def reads(self) -> Sequence[str | None]:
        """Returns the names of the outputs to read; None for one that was not given, as weights."""
        return ()

    def check(self, names: Collection[str], *read: str) -> None:
        """Raises `UserError` if `names`, those of a step's outputs, lack one that the metric reads.

        `read` are the names to look for, by default those of `reads`.
        """
        for name in read or self.reads():
            if name is not None and name not in names:
                raise self._error(
                    f"reads output {name!r}, but the step returns {', '.join(sorted(names))}; "
                    "return it too, or give the metric the name of another"
                )

    @abc.abstractmethod
    def update(self, outputs: Outputs) -> None:
        """Adds the outputs for a chunk, by name.

        Raises:
          UserError: an output is missing, or its shape, dtype or values are not those expected.
        """

    def result(self) -> float:
        """Returns the value over all chunks since the last `reset`.

        Raises:
          UserError: there was no example with a weight above 0.
        """
        if self._weight == 0:
            raise self._error("was given no example whose weight is above 0; evaluate on some")
        return math.nan if math.isnan(self._weight) else self._value()

    def _value(self) -> float:
        """Returns the result; called only if there is an example, and no value is NaN."""
        return self._sum / self._weight

    def _error(self, problem: str) -> UserError:
        return UserError(f"{type(self).__name__} {problem}")

    def _output(self, outputs: Outputs, name: str) -> np.ndarray:
        """Returns an output: integers and booleans as they are, other numbers as float64."""
        self.check(outputs, name)
        array = np.asarray(outputs[name])
        if array.ndim == 0:
            raise self._error(f"reads output {name!r}, a scalar; return a value per example")
        try:
            return array if array.dtype.kind in "biu" else array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise self._error(f"reads output {name!r} of {array.dtype}; return numbers") from error

    def _weights(self, outputs: Outputs, name: str | None, shape: tuple[int, ...]) -> np.ndarray:
        if name is None:
            return np.ones(shape)
        weights = self._output(outputs, name).astype(np.float64)
        if weights.ndim > len(shape):
            weights = _without_last(weights)
        if weights.shape != shape[: weights.ndim]:
            raise self._error(
                f"reads weights {name!r} of shape {list(weights.shape)} for values of shape "
                f"{list(shape)}; return one per value or per example"
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise self._error(f"reads weights {name!r}; expected finite ones of at least 0")
        ones = (1,) * (len(shape) - weights.ndim)
        return np.broadcast_to(weights.reshape(weights.shape + ones), shape)


@dataclass(eq=False)
class Comparison(Metric):
    """A metric that compares predictions with labels.

    Args:
      labels: name of the true values, `[n]` or with more dimensions; `[n, 1]` counts as `[n]`.
      predictions: name of the predicted values, of the same shape.
      weights: name of the weights, or None.
    """

    labels: str = "labels"
    predictions: str = "predictions"
    weights: str | None = None

    _by_class = False  # Whether predictions may have a score for each class.

    def __post_init__(self) -> None:
        self.reset()

    def reads(self) -> Sequence[str | None]:
        return self.labels, self.predictions, self.weights

    def update(self, outputs: Outputs) -> None:
        labels, predictions = self._matched(
            self._output(outputs, self.labels), self._output(outputs, self.predictions)
        )
        weights = self._weights(outputs, self.weights, labels.shape)
        counted = weights > 0
        labels, predictions, weights = labels[counted], predictions[counted], weights[counted]
        if np.isnan(labels).any() or np.isnan(predictions).any():
            self._weight = math.nan
        elif len(weights):
            self._weight += float(weights.sum())
            self._add(labels, predictions, weights)

    @abc.abstractmethod
    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        """Adds labels `[m]`, predictions `[m]` or `[m, classes]`, and weights `[m]` above 0."""

    def _matched(
        self, labels: np.ndarray, predictions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        squeezed = _without_last(labels), _without_last(predictions)
        for one, other in ((labels, predictions), squeezed):
            has_classes = self._by_class and other.shape[-1] > 1
            if one.shape == other.shape or (has_classes and one.shape == other.shape[:-1]):
                return one, other
        also = ", or predictions with one more dimension, the classes" if self._by_class else ""
        raise self._error(
            f"reads labels {self.labels!r} of shape {list(labels.shape)} and predictions "
            f"{self.predictions!r} of shape {list(predictions.shape)}; return the same shape{also}"
        )

    def _whole(self, labels: np.ndarray, classes: float = math.inf) -> np.ndarray:
        """Returns labels as int64; raises a `UserError` unless all are in 0, ..., `classes` - 1."""
        wrong = (labels < 0) | (labels >= classes) | (labels != np.floor(labels))
        if wrong.any():
            upto = "" if classes == math.inf else f" below {classes}"
            raise self._error(
                f"reads labels {self.labels!r} with the value {labels[wrong][0]}; expected whole "
                f"numbers from 0{upto}"
            )
        return labels.astype(np.int64)


def _without_last(array: np.ndarray) -> np.ndarray:
    """Removes a last dimension of size 1, unless it is the only dimension."""
    return array[..., 0] if array.ndim > 1 and array.shape[-1] == 1 else array
