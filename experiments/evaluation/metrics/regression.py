"""Metrics of numbers: the mean of an output, and the errors of predictions."""

from __future__ import annotations

import math
from typing import Sequence

import numpy as np

from experiments.evaluation.metrics.metric import Comparison, Metric, Outputs


class Mean(Metric):
    """The mean of an output.

    Args:
      values: name of the output, `[n, ...]`.
      weights: name of the weights, or None.
    """

    def __init__(self, values: str = "values", weights: str | None = None) -> None:
        self._values, self._weights_name = values, weights
        super().__init__()

    def reads(self) -> Sequence[str | None]:
        return self._values, self._weights_name

    def update(self, outputs: Outputs) -> None:
        values = self._output(outputs, self._values)
        weights = self._weights(outputs, self._weights_name, values.shape)
        counted = weights > 0
        self._sum += float((weights[counted] * values[counted]).sum())
        self._weight += float(weights.sum())


class Perplexity(Mean):
    """The exponential of the mean loss; infinite if that is larger than a float64 can be.

    Args:
      losses: name of the negative log-likelihoods in nats, one per token, `[n, ...]`.
      weights: name of the weights, such as a mask of padding, or None.
    """

    def __init__(self, losses: str = "losses", weights: str | None = None) -> None:
        super().__init__(losses, weights)

    def _value(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(super()._value()))


class MAE(Comparison):
    """A `Comparison` by the mean absolute error, in the unit of the labels."""

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        # In float64, since a difference of unsigned integers would be unsigned.
        differences = np.subtract(predictions, labels, dtype=np.float64)
        self._sum += float((weights * np.abs(differences)).sum())


class RMSE(MAE):
    """A `Comparison` by the root of the mean squared error, in the unit of the labels."""

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        differences = np.subtract(predictions, labels, dtype=np.float64)
        self._sum += float((weights * differences**2).sum())

    def _value(self) -> float:
        return math.sqrt(super()._value())


class R2(RMSE):
    """The coefficient of determination, at most 1; NaN where all labels are the same.

    The arguments are those of `Comparison`. If examples have several values, all values count
    alike. The variances of chunks are merged as by Chan, Golub and LeVeque (1979), which is precise
    even if the mean is large.
    """

    def reset(self) -> None:
        super().reset()
        self._counted = self._mean = self._squares = 0.0

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        super()._add(labels, predictions, weights)
        weight = float(weights.sum())
        mean = float((weights * labels).sum()) / weight
        squares = float((weights * (labels - mean) ** 2).sum())
        before, self._counted = self._counted, self._counted + weight
        apart = mean - self._mean
        self._mean += apart * weight / self._counted
        self._squares += squares + apart**2 * before * weight / self._counted

    def _value(self) -> float:
        return 1 - self._sum / self._squares if self._squares else math.nan
