"""`tf.contrib.learn.MetricSpec`: additional evaluation metrics."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable, Mapping

import numpy as np

from compat._tensorflow import tf1
from compat.estimator.package import names as tf_estimator

# Prediction keys of `tf.contrib.learn`, by those of `tf.estimator`.
_RENAMED = {"classes": "class_ids", "scores": "predictions"}


class PredictionKey:
    """The keys of predictions."""

    CLASSES = "classes"
    GENERIC = "output"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    SCORES = "scores"
    TOP_K = "top_k"


@dataclasses.dataclass(eq=False)
class MetricSpec:
    """A metric of predictions and labels, which are selected by their keys.

    A key is only needed if there are several predictions or labels. `metric_fn` is called with the
    predictions, the labels and, if there is a `weight_key`, the weights.
    """

    metric_fn: Callable[..., Any]
    prediction_key: str | None = None
    label_key: str | None = None
    weight_key: str | None = None

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """Returns the value and the update operation of the metric."""
        if isinstance(predictions, Mapping):
            predictions = tensor(predictions, self.prediction_key)
        if isinstance(labels, Mapping):
            labels = labels[self.label_key] if self.label_key else next(iter(labels.values()))
        if predictions.shape.rank == 2 and labels.shape.rank == 1 and predictions.shape[1] == 1:
            predictions = predictions[:, 0]
        weights = {"weights": inputs[self.weight_key]} if self.weight_key else {}
        try:
            names = set(inspect.signature(self.metric_fn).parameters)
        except (TypeError, ValueError):
            names = set()
        if {"predictions", "labels"} <= names:
            return self.metric_fn(predictions=predictions, labels=labels, **weights)
        return self.metric_fn(predictions, labels, **weights)


def tensor(predictions: Mapping[str, Any], key: str | None) -> Any:
    """Returns predictions by key; if None, "class_ids", else "predictions", else the first."""
    if key is None:
        known = ("class_ids", "predictions", *predictions)
        return predictions[next(name for name in known if name in predictions)]
    # A custom model has keys of its own.
    is_canned = "class_ids" in predictions or "predictions" in predictions
    return predictions[_RENAMED.get(key, key) if is_canned else key]


def output(prediction: Mapping[str, Any], key: str) -> Any:
    """Returns the prediction `key` for an example, as a scalar if it has one element."""
    value = tensor(prediction, key)
    return np.asarray(value).reshape(()).item() if np.shape(value) == (1,) else value


def with_metrics(core: Any, metrics: Any) -> Any:
    """Returns the estimator `core` with more metrics.

    The keys of `metrics` are names, or pairs of a name and the key of a prediction. The values are
    functions or `MetricSpec`s.
    """
    if not metrics:
        return core

    def measure(labels: Any, predictions: Any, features: Any) -> dict[str, Any]:
        operations = {}
        for name, spec in metrics.items():
            name, key = name if isinstance(name, tuple) else (name, None)
            if not isinstance(spec, MetricSpec):
                spec = MetricSpec(spec, key)
            metric = spec.create_metric_ops(features, labels, predictions)
            # The function returned the value of a batch, not a pair (value, update); average it.
            operations[name] = metric if isinstance(metric, tuple) else tf1.metrics.mean(metric)
        return operations

    return tf_estimator.add_metrics(core, measure)
