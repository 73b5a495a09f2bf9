"""Metrics that are exact over a whole set, however it is cut into chunks.

    metric = AUC()
    metric.update({"labels": labels, "predictions": scores})  # once per chunk
    metric.result()

They are NumPy on the host and import no TensorFlow. Any object with these two methods is a metric.
"""

from __future__ import annotations

import abc
import math
from typing import Mapping

import numpy as np

from compat.errors import UserError

Outputs = Mapping[str, np.ndarray]


class Metric(abc.ABC):
    """A value over all examples that it has been given; an instance is for one evaluation."""

    @abc.abstractmethod
    def update(self, outputs: Outputs) -> None:
        """Adds the examples of a chunk.

        Args:
          outputs: what the loss function returned beside the loss, by name.

        Raises:
          UserError: an output is missing, or of the wrong shape.
        """

    @abc.abstractmethod
    def result(self) -> float:
        """Returns the value; NaN as long as there are no examples for it."""


class _Sums(Metric):
    """A function of sums over the examples, as float64."""

    def __init__(self, labels: str, predictions: str, weights: str | None) -> None:
        self._names = (labels, predictions)
        self._weights = weights
        self._sums = np.zeros(5)

    def update(self, outputs: Outputs) -> None:
        labels, predictions = (_output(outputs, name) for name in self._names)
        weights = np.ones(labels.shape[:1])
        if self._weights is not None:
            weights = _output(outputs, self._weights).astype(np.float64)
        terms = self.terms(labels, predictions)
        self._sums[: len(terms)] += [float(np.sum(term * weights)) for term in terms]

    @abc.abstractmethod
    def terms(self, labels: np.ndarray, predictions: np.ndarray) -> list[np.ndarray]:
        """Returns what is summed, `[examples]` each."""


class Mean(Metric):
    """The mean of one output over its elements.

    Args:
      values: name of the output, of any shape.
      weights: name of the output with a weight for each element, or None.
    """

    def __init__(self, values: str, weights: str | None = None) -> None:
        self._values, self._weights = values, weights
        self._total = self._count = 0.0

    def update(self, outputs: Outputs) -> None:
        values = _output(outputs, self._values).astype(np.float64)
        weights = np.ones_like(values)
        if self._weights is not None:
            weights = _same_shape(_output(outputs, self._weights), values, self._weights)
        self._total += float(np.sum(values * weights))
        self._count += float(np.sum(weights))

    def result(self) -> float:
        return _ratio(self._total, self._count)


class Perplexity(Mean):
    """e to the mean negative log-likelihood, in nats per symbol; infinite where that overflows."""

    def result(self) -> float:
        mean = super().result()
        return math.exp(mean) if not mean > 700 else math.inf


class Accuracy(_Sums):
    """The share of examples whose class is predicted.

    Args:
      labels: name of the output with the classes, integers `[examples]`.
      predictions: of the predicted classes, integers `[examples]`; or of the scores, of which the
        largest counts, `[examples, classes]`.
      weights: of the examples' weights, or None.
    """

    def __init__(
        self, labels: str = "labels", predictions: str = "predictions", weights: str | None = None
    ) -> None:
        super().__init__(labels, predictions, weights)

    def terms(self, labels: np.ndarray, predictions: np.ndarray) -> list[np.ndarray]:
        if predictions.ndim == labels.ndim + 1:
            predictions = predictions.argmax(axis=-1)
        right = _same_shape(predictions, labels, self._names[1]) == labels
        return [right, np.ones(labels.shape)]

    def result(self) -> float:
        return _ratio(self._sums[0], self._sums[1])


class _Decisions(_Sums):
    """Counts of decisions between two classes.

    Args:
      labels: name of the output with the classes, 0 or 1, `[examples]`.
      predictions: of the scores of class 1, `[examples]`, or `[examples, 2]` of both classes.
      threshold: the score above which an example is taken for class 1; of `[examples, 2]` the
        larger score decides.
      weights: of the examples' weights, or None.
    """

    def __init__(
        self,
        labels: str = "labels",
        predictions: str = "predictions",
        threshold: float = 0.5,
        weights: str | None = None,
    ) -> None:
        super().__init__(labels, predictions, weights)
        self._threshold = threshold

    def terms(self, labels: np.ndarray, predictions: np.ndarray) -> list[np.ndarray]:
        truth = _binary(labels, self._names[0])
        if predictions.ndim == 2 and predictions.shape[1] == 2:
            found = predictions[:, 1] > predictions[:, 0]
        else:
            found = _same_shape(_flat(predictions), truth, self._names[1]) > self._threshold
        return [truth & found, ~truth & found, truth & ~found]


class Precision(_Decisions):
    """The share of class 1 among the examples that are taken for it."""

    def result(self) -> float:
        return _ratio(self._sums[0], self._sums[0] + self._sums[1])


class Recall(_Decisions):
    """The share of the examples of class 1 that are taken for it."""

    def result(self) -> float:
        return _ratio(self._sums[0], self._sums[0] + self._sums[2])


class F1(_Decisions):
    """The harmonic mean of precision and recall."""

    def result(self) -> float:
        return _ratio(2 * self._sums[0], 2 * self._sums[0] + self._sums[1] + self._sums[2])


class _Errors(_Sums):
    """Sums of the errors of numbers.

    Args:
      labels: name of the output with the numbers, `[examples]`.
      predictions: of the predicted numbers, `[examples]` or `[examples, 1]`.
      weights: of the examples' weights, or None.
    """

    def __init__(
        self, labels: str = "labels", predictions: str = "predictions", weights: str | None = None
    ) -> None:
        super().__init__(labels, predictions, weights)

    def terms(self, labels: np.ndarray, predictions: np.ndarray) -> list[np.ndarray]:
        truth = _flat(labels).astype(np.float64)
        found = _same_shape(_flat(predictions).astype(np.float64), truth, self._names[1])
        return [(found - truth) ** 2, np.abs(found - truth), np.ones(truth.shape)]


class RMSE(_Errors):
    """The root of the mean squared error."""

    def result(self) -> float:
        return math.sqrt(_ratio(self._sums[0], self._sums[2]))


class MAE(_Errors):
    """The mean absolute error."""

    def result(self) -> float:
        return _ratio(self._sums[1], self._sums[2])


class LogLoss(_Sums):
    """The mean negative log-likelihood of classes 0 and 1, in nats.

    Args:
      labels: name of the output with the classes, 0 or 1, `[examples]`.
      predictions: of the probabilities of class 1, `[examples]`.
      weights: of the examples' weights, or None.
    """

    def __init__(
        self, labels: str = "labels", predictions: str = "predictions", weights: str | None = None
    ) -> None:
        super().__init__(labels, predictions, weights)

    def terms(self, labels: np.ndarray, predictions: np.ndarray) -> list[np.ndarray]:
        truth = _binary(labels, self._names[0])
        found = _same_shape(_flat(predictions).astype(np.float64), truth, self._names[1])
        least = np.finfo(np.float64).eps
        right = np.clip(np.where(truth, found, 1 - found), least, 1 - least)
        return [-np.log(right), np.ones(truth.shape)]

    def result(self) -> float:
        return _ratio(self._sums[0], self._sums[1])


class AUC(Metric):
    """The area under the receiver operating characteristic, by ranks; ties count half.

    Exact, so it keeps all scores: 16 bytes per example. Source: Hanley and McNeil, The Meaning and
    Use of the Area under a ROC Curve, 1982.

    Args:
      labels: name of the output with the classes, 0 or 1, `[examples]`.
      predictions: of the scores of class 1, `[examples]`, or `[examples, 2]` of both classes.
    """

    def __init__(self, labels: str = "labels", predictions: str = "predictions") -> None:
        self._names = (labels, predictions)
        self._labels: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []

    def update(self, outputs: Outputs) -> None:
        labels, scores = (_output(outputs, name) for name in self._names)
        truth = _binary(labels, self._names[0])
        if scores.ndim == 2 and scores.shape[1] == 2:
            scores = scores[:, 1].astype(np.float64) - scores[:, 0]
        self._labels.append(truth)
        self._scores.append(_same_shape(_flat(scores).astype(np.float64), truth, self._names[1]))

    def result(self) -> float:
        if not self._labels:
            return math.nan
        truth, scores = np.concatenate(self._labels), np.concatenate(self._scores)
        positive = int(truth.sum())
        negative = len(truth) - positive
        if not positive or not negative or np.isnan(scores).any():
            return math.nan
        _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
        last = np.cumsum(counts)
        ranks = (last - (counts - 1) / 2)[place.reshape(-1)]
        return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def _output(outputs: Outputs, name: str) -> np.ndarray:
    if name not in outputs:
        raise UserError(
            f"a metric reads {name!r}, and the outputs of loss() are "
            f"{', '.join(sorted(outputs)) or 'none'}; return it, or name another output"
        )
    return np.asarray(outputs[name])


def _flat(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _binary(labels: np.ndarray, name: str) -> np.ndarray:
    labels = _flat(labels)
    truth = labels == 1
    if not (truth | (labels == 0)).all():
        raise UserError(f"output {name!r} has values other than 0 and 1; give one of two classes")
    return truth


def _same_shape(values: np.ndarray, like: np.ndarray, name: str) -> np.ndarray:
    if values.shape != like.shape:
        raise UserError(
            f"output {name!r} has shape {list(values.shape)}, expected {list(like.shape)}, one "
            "value for each label"
        )
    return values


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else math.nan
