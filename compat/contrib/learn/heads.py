"""`tf.contrib.estimator`: heads, optimizers, and estimators that wrap others."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable

from compat._tensorflow import tf1
from compat.contrib.opt.wrappers import ClippedByGlobalNorm
from compat.estimator.package import names as tf_estimator

_heads: Any = importlib.import_module("tensorflow_estimator.python.estimator.canned.head")
_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE


def _averaging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function`, which makes a head, with the mean over the batch as the default loss."""
    return functools.partial(function, loss_reduction=_MEAN)


binary_classification_head = _averaging(
    _heads._binary_logistic_head_with_sigmoid_cross_entropy_loss
)
multi_class_head = _averaging(_heads._multi_class_head_with_softmax_cross_entropy_loss)
regression_head = _averaging(_heads._regression_head)


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None
) -> Any:
    """Returns a head for logistic regression; labels are probabilities in [0, 1]."""

    def loss(labels: Any, logits: Any) -> Any:
        labels = _heads._assert_range(labels, 2, message="Labels must be in range [0, 1]")
        return tf1.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    links = {"loss_fn": loss, "inverse_link_fn": tf1.sigmoid}
    return _heads._regression_head(weight_column, 1, loss_reduction, name=name, **links)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Any:
    """Returns a head that regresses counts; the logits are their logarithms."""

    def loss(labels: Any, logits: Any) -> Any:
        return tf1.nn.log_poisson_loss(labels, logits, compute_full_loss)

    links = {"loss_fn": loss, "inverse_link_fn": tf1.exp}
    return _heads._regression_head(
        weight_column, label_dimension, loss_reduction, name=name, **links
    )


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> Any:
    """Returns an optimizer that clips gradients by their global norm before it applies them."""
    return ClippedByGlobalNorm(optimizer, clip_norm)


def forward_features(
    estimator: Any, keys: Any = None, sparse_default_values: dict[str, Any] | None = None
) -> Any:
    """Returns an estimator whose predictions contain features of its input.

    Args:
      estimator: A `tf.estimator.Estimator` whose predictions are a dict.
      keys: The name of a feature, or names; None for all features.
      sparse_default_values: Default values of sparse features by name.

    Raises:
      ValueError: When the graph is built, if a prediction and a feature have the same name.
    """
    wanted = [keys] if isinstance(keys, str) else keys
    fillers = sparse_default_values or {}

    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        predictions = dict(spec.predictions)
        added = {}
        for key in features if wanted is None else wanted:
            if key in predictions:
                raise ValueError(f"feature {key} is a prediction too; forward it by another name")
            value = features[key]
            if key in fillers:
                value = tf1.sparse.to_dense(value, fillers[key])
            added[key] = value
        for name, output in (spec.export_outputs or {}).items():
            is_predict = isinstance(output, tf_estimator.export.PredictOutput)
            if is_predict and name in ("predict", "serving_default"):
                output.outputs.update(added)
        return spec._replace(predictions={**predictions, **added})

    return tf_estimator.Estimator(model_fn, estimator.model_dir, estimator.config)
