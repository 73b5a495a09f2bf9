"""Metrics that are pictures of predicted classes, for TensorBoard."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from compat.tracking import Writer
from experiments.evaluation.metrics import drawing
from experiments.evaluation.metrics.classification import predicted_class
from experiments.evaluation.metrics.metric import Comparison, Metric, Outputs

_MOST_WRITTEN = 30  # The most classes for which a matrix is written as text, too.
_THRESHOLDS = 201  # An odd number, so that 0.5 is one of them.


@dataclass(eq=False)
class Picture(Comparison):
    """A metric that has no number; at each evaluation, `write` records a picture.

    Args:
      labels: name of the class ids, whole numbers, `[n]`.
      predictions: name of the predicted class ids, or of scores, as for `Accuracy`.
      weights: name of the weights, or None.
      classes: names of the classes, by their ids; by default the ids.
    """

    classes: Sequence[str] | None = None

    _by_class = True

    def result(self) -> None:  # type: ignore[override]
        """Returns None: there is no number."""

    def write(self, writer: Writer, step: int, name: str) -> None:
        """Records the picture; it does nothing if there is no example, or a value is NaN."""
        if self._weight > 0:
            self._write(writer, step, name)

    @abc.abstractmethod
    def _write(self, writer: Writer, step: int, name: str) -> None:
        """Records the picture; called only if there is an example, and no value is NaN."""

    def _true(self, labels: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Returns the labels as int64 class ids.

        Raises a `UserError` if one of them has no score in `predictions`, or no name in `classes`.
        """
        scores = predictions.shape[1] if predictions.ndim == 2 else None
        named = None if self.classes is None else len(self.classes)
        if None not in (scores, named) and scores != named:
            raise self._error(
                f"has names of {named} classes, but reads scores of {scores}; name all"
            )
        return self._whole(labels, scores or named or np.inf)

    def _names(self, number: int) -> list[str]:
        return [str(name) for name in self.classes or range(number)]


@dataclass(eq=False)
class ConfusionMatrix(Picture):
    """The number of examples for each label and each predicted class, as an image and as text.

    The arguments are those of `Picture`, and:

    Args:
      threshold: as for `Accuracy`.
    """

    threshold: float = 0.5

    def reset(self) -> None:
        super().reset()
        self.counts: np.ndarray = np.zeros([0, 0])  # Sums of weights, `[label, prediction]`.

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        true = self._true(labels, predictions)
        guess = self._true(predicted_class(predictions, self.threshold), predictions)
        known = predictions.shape[1] if predictions.ndim == 2 else 2
        number = max(len(self.counts), known, true.max() + 1, guess.max() + 1)
        counts = np.bincount(true * number + guess, weights, number**2).reshape(number, number)
        counts[: len(self.counts), : len(self.counts)] += self.counts
        self.counts = counts

    def _write(self, writer: Writer, step: int, name: str) -> None:
        names = self._names(len(self.counts))
        writer.images(step, {name: drawing.matrix(self.counts, names)})
        if len(names) <= _MOST_WRITTEN:
            writer.texts(step, {f"{name}/table": self.text()})

    def text(self) -> str:
        """Returns the matrix as a Markdown table, a row for each label."""
        names = self._names(len(self.counts))
        rows = [["label ↓ predicted →", *names], ["---"] * (len(names) + 1)]
        rows += [[n, *(f"{x:.6g}" for x in row)] for n, row in zip(names, self.counts)]
        return "\n".join(
            "| " + " | ".join(c.replace("|", r"\|") for c in row) + " |" for row in rows
        )


@dataclass(eq=False)
class PrecisionRecallCurve(Picture):
    """Precision and recall at each threshold of the probability, a curve for each class.

    The numbers of examples are exact, at 201 thresholds from 0 to 1. For two classes there is only
    the curve of class 1. The arguments are those of `Picture`, and:

    Args:
      predictions: name of the probabilities of class 1, `[n]`, or of each class, `[n, classes]`.
      from_logits: whether predictions are logits.
    """

    from_logits: bool = False

    def reset(self) -> None:
        super().reset()
        # Sums of weights, `[class, largest threshold passed, whether the class is the label]`.
        self._counts: np.ndarray | None = None

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        scores = predictions.reshape(len(labels), -1)
        true = self._true(labels, scores if scores.shape[1] > 1 else np.zeros([1, 2]))
        if self.from_logits:  # If two classes have only one logit, the logit of class 0 is 0.
            all_logits = (
                scores if scores.shape[1] > 1 else np.pad(scores, ((0, 0), (1, 0)), "constant")
            )
            scores = np.exp(scores - np.logaddexp.reduce(all_logits, axis=1, keepdims=True))
        elif scores.min() < 0 or scores.max() > 1:
            raise self._error(
                f"reads predictions {self.predictions!r} from {scores.min():g} to "
                f"{scores.max():g}; expected probabilities, or give from_logits=True"
            )
        ids = np.arange(scores.shape[1])
        if len(ids) <= 2:
            scores, ids = scores[:, -1:], np.ones(1, np.int64)
        passed = np.floor(scores * (_THRESHOLDS - 1)).astype(np.int64)
        cells = (np.arange(len(ids)) * _THRESHOLDS + passed) * 2 + (true[:, np.newaxis] == ids)
        shape = len(ids), _THRESHOLDS, 2
        spread = np.broadcast_to(weights[:, np.newaxis], cells.shape)
        counts = np.bincount(cells.ravel(), spread.ravel(), int(np.prod(shape))).reshape(shape)
        self._counts = counts if self._counts is None else self._counts + counts

    def curves(self) -> np.ndarray:
        """Returns the curves as float64 `[classes, 6, 201]`.

        The six are true positives, false positives, true negatives, false negatives, precision and
        recall, at thresholds that increase from 0 to 1.
        """
        assert self._counts is not None
        # The numbers of examples at or above each threshold.
        fp, tp = np.moveaxis(np.cumsum(self._counts[:, ::-1], axis=1)[:, ::-1], 2, 0)
        fn, tn = tp[:, :1] - tp, fp[:, :1] - fp
        precision, recall = tp / np.maximum(tp + fp, 1e-12), tp / np.maximum(tp + fn, 1e-12)
        return np.stack([tp, fp, tn, fn, precision, recall], axis=1)

    def _write(self, writer: Writer, step: int, name: str) -> None:
        curves = self.curves()
        names = [name]
        if len(curves) > 1:
            names = [f"{name}/{label}" for label in self._names(len(curves))]
        writer.pr_curves(step, dict(zip(names, curves)))


@dataclass(eq=False)
class Misclassified(Picture):
    """The examples whose predicted class is wrong, as images, those predicted most certainly first.

    The arguments are those of `Picture`, and:

    Args:
      threshold: as for `Accuracy`.
      images: name of the images, `[n, height, width]` or `[n, height, width, channels]` with 1, 3
        or 4 channels: uint8, or numbers from 0 to 1.
      most: the largest number of images that are shown.
    """

    threshold: float = 0.5
    images: str = "images"
    most: int = 25

    def reset(self) -> None:
        super().reset()
        self._kept: list[tuple[float, np.ndarray, int, int]] = []

    def reads(self) -> Sequence[str | None]:
        return (*super().reads(), self.images)

    def update(self, outputs: Outputs) -> None:
        super().update(outputs)
        if np.isnan(self._weight):
            return
        labels, predictions = self._matched(
            self._output(outputs, self.labels), self._output(outputs, self.predictions)
        )
        images = self._output(outputs, self.images)
        if labels.shape != images.shape[:1]:
            raise self._error(
                f"reads labels {self.labels!r} of shape {list(labels.shape)} and {len(images)} "
                "images; return a label for each"
            )
        weights = self._weights(outputs, self.weights, labels.shape)
        guess = predicted_class(predictions, self.threshold)
        wrong = np.flatnonzero((guess != labels) & (weights > 0))
        certainty = self._certainty(predictions[wrong], labels[wrong].astype(np.int64))
        most = np.argsort(-certainty, kind="stable")[: self.most]
        rows = wrong[most]
        shown = drawing.pixels(images, self.images, rows)
        self._kept += zip(certainty[most], shown, map(int, labels[rows]), map(int, guess[rows]))
        self._kept = sorted(self._kept, key=lambda kept: -kept[0])[: self.most]

    def _certainty(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Returns how certain each wrong prediction is; 0 if predictions are class ids.

        For a score of each class, it is the distance of the largest score from that of the label;
        for a score of class 1, its distance from the threshold.
        """
        if predictions.ndim == 2:
            right = np.take_along_axis(predictions, labels[:, np.newaxis], axis=1)[:, 0]
            return np.asarray(predictions.max(axis=1) - right)
        is_score = predictions.dtype.kind == "f"
        return np.abs(predictions - self.threshold) if is_score else np.zeros(len(predictions))

    def _add(self, labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> None:
        self._true(labels, predictions)

    def _write(self, writer: Writer, step: int, name: str) -> None:
        if self._kept:
            _, images, true, guess = zip(*self._kept)
            names = self._names(max(*true, *guess) + 1)
            captions = [(names[t], names[g]) for t, g in zip(true, guess)]
            writer.images(step, {name: drawing.gallery(images, captions)})


@dataclass(eq=False)
class Embedding(Metric):
    """The first examples as points in TensorBoard's projector, recorded once, at the end of a run.

    Args:
      vectors: name of the vectors of the points, `[n, width]` or with more dimensions, such as a
        layer's outputs.
      labels: name of the labels of the points, `[n]`, such as class ids; or None.
      images: name of images as for `Misclassified`, or None.
      classes: names of the classes, by their ids; by default the ids.
      most: the largest number of points.
    """

    vectors: str = "predictions"
    labels: str | None = "labels"
    images: str | None = None
    classes: Sequence[str] | None = None
    most: int = 1000

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._parts: dict[str, list[np.ndarray]] = {}

    def reads(self) -> Sequence[str | None]:
        return self.vectors, self.labels, self.images

    def update(self, outputs: Outputs) -> None:
        number, *width = self._output(outputs, self.vectors).shape
        if np.prod(width) < 2:
            raise self._error(f"reads vectors {self.vectors!r} of one number; return several each")
        if self.labels is not None and self._output(outputs, self.labels).size != number:
            raise self._error(f"reads labels {self.labels!r}; return one for each of the vectors")
        left = self.most - sum(map(len, self._parts.get(self.vectors, [])))
        if left > 0:
            for name in filter(None, self.reads()):
                self._parts.setdefault(name, []).append(self._output(outputs, name)[:left])

    def result(self) -> None:  # type: ignore[override]
        """Returns None: there is no number."""

    def write_at_end(self, writer: Writer, name: str) -> None:
        """Records the examples of the run's last evaluation, if it had any, as projector points."""
        found = {part: np.concatenate(chunks) for part, chunks in self._parts.items()}
        if found:
            vectors = found[self.vectors].reshape(len(found[self.vectors]), -1)
            labels = images = None
            if self.labels is not None:
                names = dict(enumerate(self.classes or ()))
                labels = [str(names.get(label, label)) for label in found[self.labels].ravel()]
            if self.images is not None:
                images = drawing.pixels(found[self.images], self.images)
            writer.embedding(name, vectors, labels, images)


def classifier_pictures(
    classes: Sequence[str] | None = None, images: str = "images"
) -> dict[str, Metric]:
    """Returns all pictures of this module by name, for a classifier of images.

    The output "predictions" of `loss` has to be logits, `[n, classes]`. `images` is the name of the
    output of the images.
    """
    return {
        "confusion": ConfusionMatrix(classes=classes),
        "misclassified": Misclassified(images=images, classes=classes),
        "pr_curve": PrecisionRecallCurve(classes=classes, from_logits=True),
        "logits": Embedding(images=images, classes=classes),
    }
