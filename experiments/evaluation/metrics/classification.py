"""Metrics of predicted classes, and of predicted probabilities of classes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments.evaluation.metrics.metric import Comparison


def predicted_class(predictions: np.ndarray, threshold: float) -> np.ndarray:
    """Returns predicted classes, `[n]`, from class ids or scores; see `Accuracy`."""
    if predictions.ndim == 2:
        return np.asarray(predictions.argmax(axis=1))
    return predictions > threshold if predictions.dtype.kind == "f" else predictions


@dataclass(eq=False)
class Accuracy(Comparison):
    """The share of examples whose class is predicted correctly, in [0, 1].

    Args:
      labels: name of the class ids, whole numbers, `[n]`.
      predictions: name of the predicted class ids, integers `[n]`; or of the scores of class 1,
        floats `[n]`; or of the scores of each class, such as logits, floats `[n, classes]`.
      weights: name of the weights, or None.
      threshold: for scores `[n]`, class 1 is predicted if its score is greater: 0.5 for
        probabilities, 0 for logits.
    """

    threshold: float = 0.5

    _by_class = True

    def reset(self) -> None:
        super().reset()
        self._whole_sum = 0.0

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        part, whole = self._share(self._whole(labels), predicted_class(predictions, self.threshold))
        self._sum += float((weights * part).sum())
        self._whole_sum += float((weights * whole).sum())

    def _share(self, true: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns what each example adds to the numerator and to the denominator of the metric."""
        return true == guess, np.ones(len(true))

    def _value(self) -> float:
        return self._sum / self._whole_sum if self._whole_sum else math.nan


class Precision(Accuracy):
    """The share of examples with the label 1 among those predicted as 1; NaN if there are none.

    The arguments are those of `Accuracy`.
    """

    def _share(self, true: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (true == 1) & (guess == 1), guess == 1


class Recall(Accuracy):
    """The share of examples predicted as 1 among those with the label 1; NaN if there are none.

    The arguments are those of `Accuracy`.
    """

    def _share(self, true: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (true == 1) & (guess == 1), true == 1


class F1(Accuracy):
    """The harmonic mean of precision and recall; NaN if no label and no prediction is 1.

    The arguments are those of `Accuracy`.
    """

    def _share(self, true: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 2 * ((true == 1) & (guess == 1)), np.add(true == 1, guess == 1, dtype=np.int64)


class AUC(Comparison):
    """The area under the ROC curve, in [0, 1]; NaN if all labels are the same.

    This is the probability that an example of class 1 has a greater score than one of class 0;
    equal scores count half. It is computed exactly, from the ranks of the scores instead of
    thresholds, so it stores all scores, some 24 bytes per example. Logits and probabilities give
    the same result.

    Args:
      labels: name of the classes, 0 or 1, `[n]`.
      predictions: name of the scores of class 1, `[n]`, or of both classes, `[n, 2]`.
      weights: name of the weights, or None.
    """

    _by_class = True

    def reset(self) -> None:
        super().reset()
        self._chunks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        if predictions.ndim == 2:
            if predictions.shape[1] != 2:
                raise self._error(
                    f"reads scores of {predictions.shape[1]} classes; return those of two"
                )
            predictions = predictions[:, 1] - predictions[:, 0]
        self._chunks.append((self._whole(labels, classes=2) == 1, predictions, weights))

    def _value(self) -> float:
        is_one, scores, weights = (np.concatenate(parts) for parts in zip(*self._chunks))
        ranked, rank = np.unique(scores, return_inverse=True)
        ones, zeros = (
            np.bincount(rank, np.where(chosen, weights, 0.0), len(ranked))
            for chosen in (is_one, ~is_one)
        )
        pairs = ones.sum() * zeros.sum()
        below = np.cumsum(zeros) - zeros / 2
        return float((ones * below).sum() / pairs) if pairs else math.nan


@dataclass(eq=False)
class LogLoss(Comparison):
    """The mean negative log-likelihood of the true classes, in nats.

    Args:
      labels: name of the class ids, whole numbers, `[n]`.
      predictions: name of the probabilities of class 1, `[n]`, or of each class, `[n, classes]`.
        Probabilities are clipped to 1.2e-7 from 0 and 1, the precision of float32.
      weights: name of the weights, or None.
      from_logits: whether predictions are logits.
    """

    from_logits: bool = False

    _by_class = True

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        if predictions.ndim == 1:  # There are two classes, and class 0 has the rest.
            other = 0 * predictions if self.from_logits else 1 - predictions
            predictions = np.stack([other, predictions], axis=1)
        true = self._whole(labels, classes=predictions.shape[1])[:, np.newaxis]
        if self.from_logits:
            predictions = predictions - predictions.max(axis=1, keepdims=True)
            total = np.log(np.exp(predictions).sum(axis=1))
            losses = total - np.take_along_axis(predictions, true, axis=1)[:, 0]
        else:
            if predictions.min() < 0 or predictions.max() > 1:
                raise self._error(
                    f"reads predictions {self.predictions!r} from {predictions.min():g} to "
                    f"{predictions.max():g}; expected probabilities, or give from_logits=True"
                )
            least = float(np.finfo(np.float32).eps)
            chosen = np.take_along_axis(predictions, true, axis=1)[:, 0]
            losses = -np.log(np.clip(chosen, least, 1 - least))
        self._sum += float((weights * losses).sum())


class Calibration(Comparison):
    """The mean predicted probability divided by the share of class 1, which is ideally 1.

    It is NaN if no label is 1.

    Args:
      labels: name of the output that has the classes, 0 or 1, `[n]`.
      predictions: name of the output that has the probabilities of class 1, `[n]`.
      weights: name of the output that has the weights, or None.
    """

    def reset(self) -> None:
        super().reset()
        self._ones = 0.0

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        self._ones += float((weights * self._whole(labels, classes=2)).sum())
        self._sum += float((weights * predictions).sum())

    def _value(self) -> float:
        return self._sum / self._ones if self._ones else math.nan
