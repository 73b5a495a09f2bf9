"""Heads of `tf.contrib.estimator` for examples with several labels, and for several objectives."""

from __future__ import annotations

import importlib
from typing import Any, Mapping, Sequence

from compat._tensorflow import tf1
from compat.estimator.package import names as tf_estimator

_INSIDE = "tensorflow_estimator.python.estimator."
_heads: Any = importlib.import_module(_INSIDE + "canned.head")
_keys: Any = importlib.import_module(_INSIDE + "canned.metric_keys").MetricKeys
_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE
_MODES = tf_estimator.ModeKeys
_PREDICT, _CLASSIFY, _DEFAULT = "predict", "classification", "serving_default"


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    classes_for_class_based_metrics: Sequence[Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns a head for examples with any number of `n_classes` labels.

    Labels are 0 or 1, `[..., n_classes]`, or a sparse tensor of classes or of words of
    `label_vocabulary`. For each of the `thresholds` of probabilities, accuracy, precision and
    recall are evaluated.

    Raises:
      ValueError: If a number is out of its range, or the vocabulary has another length.
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(
            f"n_classes must be > 1 for multi-class classification. Given: {n_classes}"
        )
    for threshold in thresholds or ():
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"thresholds must be in (0, 1) range. Given: {threshold}")
    words = label_vocabulary
    if words is not None and len(words) != n_classes:
        raise ValueError(
            f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(words)}"
        )
    if loss_fn:
        _heads._validate_loss_fn_args(loss_fn)
    classes = list(classes_for_class_based_metrics or ())
    classes = [list(words or ()).index(c) if isinstance(c, str) else c for c in classes]
    if any(not 0 <= each < n_classes for each in classes):
        raise ValueError(
            f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. "
            f"Given: {classes}"
        )
    head = _MultiLabelHead(n_classes, weight_column, loss_reduction, loss_fn, tf1.sigmoid, name)
    head.thresholds, head.vocabulary, head.classes = list(thresholds or ()), words, classes
    return head


class _MultiLabelHead(_heads._RegressionHeadWithMeanSquaredErrorLoss):
    """A head that predicts the probability of each class."""

    thresholds: Sequence[float]
    vocabulary: Sequence[str] | None
    classes: Sequence[int]

    def _indicators(self, labels: Any) -> Any:
        if not isinstance(labels, tf1.SparseTensor):
            why = "labels must be an integer indicator Tensor with values in [0, 1]"
            return _heads._assert_range(labels, 2, message=why)
        if labels.dtype == tf1.string:
            table = tf1.lookup.StaticHashTable(
                tf1.lookup.KeyValueTensorInitializer(
                    list(self.vocabulary or ()),
                    range(self._logits_dimension),
                    tf1.string,
                    tf1.int64,
                ),
                -1,
            )
            labels = tf1.SparseTensor(labels.indices, table[labels.values], labels.dense_shape)
        why = f"labels must be an integer SparseTensor with values in [0, {self._logits_dimension})"
        checks = [_heads._assert_range(labels.values, self._logits_dimension, message=why)]
        with tf1.control_dependencies(checks):
            indicators = tf1.sparse.to_indicator(labels, self._logits_dimension)
            return tf1.cast(indicators, tf1.int64)

    def create_loss(self, features: Any, mode: Any, logits: Any, labels: Any) -> Any:
        logits = tf1.convert_to_tensor(logits)
        labels = _heads._check_dense_labels_match_logits_and_reshape(
            self._indicators(labels), logits, self._logits_dimension
        )
        if self._loss_fn:
            loss = _heads._call_loss_fn(self._loss_fn, labels, logits, features, 1)
        else:
            none = tf1.losses.Reduction.NONE
            loss = tf1.losses.sigmoid_cross_entropy(labels, logits, reduction=none)
            loss = tf1.reduce_mean(loss, axis=-1, keepdims=True)
        weights = _heads._get_weights_and_check_match_logits(features, self._weight_column, logits)
        total = tf1.losses.compute_weighted_loss(loss, weights, reduction=self._loss_reduction)
        return _heads.LossSpec(total, loss, weights, labels)

    def _create_tpu_estimator_spec(
        self, features: Any, mode: Any, logits: Any, labels: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if labels is not None:  # The metrics use the labels as they are given here.
            labels = self._indicators(labels)
        spec = super()._create_tpu_estimator_spec(features, mode, logits, labels, *args, **kwargs)
        chances = spec.predictions["predictions"]
        predictions = {"logits": spec.predictions["logits"], "probabilities": chances}
        if mode != _MODES.PREDICT:
            return spec._replace(predictions=predictions)
        output = _heads._classification_output(chances, self._logits_dimension, self.vocabulary)
        outputs = {_PREDICT: tf_estimator.export.PredictOutput(predictions)}
        outputs.update({_DEFAULT: output, _CLASSIFY: output})
        return spec._replace(predictions=predictions, export_outputs=outputs)

    def _eval_metric_ops(
        self,
        predicted_value: Any,
        labels: Any,
        weights: Any,
        unreduced_loss: Any,
        regularization_loss: Any,
    ) -> dict[str, Any]:
        chances, operations = predicted_value, {}

        def add(key: str, metric: Any) -> None:
            operations[_heads._summary_key(self._name, key)] = metric

        add(_keys.LOSS_MEAN, tf1.metrics.mean(unreduced_loss, weights))
        for key, curve in ((_keys.AUC, "ROC"), (_keys.AUC_PR, "PR")):
            add(key, tf1.metrics.auc(labels, chances, weights, curve=curve))
        if regularization_loss is not None:
            add(_keys.LOSS_REGULARIZATION, tf1.metrics.mean(regularization_loss))
        for limit in self.thresholds:
            for key, metric in (
                (_keys.ACCURACY_AT_THRESHOLD, _heads._accuracy_at_threshold),
                (_keys.PRECISION_AT_THRESHOLD, _heads._precision_at_threshold),
                (_keys.RECALL_AT_THRESHOLD, _heads._recall_at_threshold),
            ):
                add(key % limit, metric(labels, chances, weights, limit))
        for each in self.classes:
            chance, truth = chances[..., each : each + 1], labels[..., each : each + 1]
            words = self.vocabulary
            kind, what = ("CLASS", each) if words is None else ("NAME", words[each])
            mean = _heads._predictions_mean(chance, weights)
            add(getattr(_keys, f"PROBABILITY_MEAN_AT_{kind}") % what, mean)
            for key, curve in (("AUC", "ROC"), ("AUC_PR", "PR")):
                area = _heads._auc(truth, chance, weights, curve=curve)
                add(getattr(_keys, f"{key}_AT_{kind}") % what, area)
        return operations


def multi_head(heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> Any:
    """Returns a head that combines several heads; their names are the keys of labels and logits.

    Raises:
      ValueError: If `heads` is empty, a head has no name, or the number of weights differs.
    """
    if not heads:
        raise ValueError(f"Must specify heads. Given: {heads}")
    for head in heads:
        if not head.name:
            raise ValueError(f"All given heads must have name specified. Given: {head}")
    if head_weights and len(head_weights) != len(heads):
        raise ValueError(
            "heads and head_weights must have the same size. Given len(heads): "
            f"{len(heads)}. Given len(head_weights): {len(head_weights)}."
        )
    return _MultiHead(heads, head_weights)


class _MultiHead(_heads._Head):
    """A head whose loss is the weighted sum of the losses of other heads."""

    def __init__(self, heads: Sequence[Any], weights: Sequence[float] | None) -> None:
        self._heads, self._weights = list(heads), list(weights or [1.0] * len(heads))

    @property
    def name(self) -> str:
        return "_".join(head.name for head in self._heads)

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def _split(self, logits: Any) -> Mapping[str, Any]:
        if isinstance(logits, dict):
            return logits
        sizes = [head.logits_dimension for head in self._heads]
        return dict(zip([head.name for head in self._heads], tf1.split(logits, sizes, axis=-1)))

    def _merged(self, losses: Sequence[Any]) -> Any:
        return tf1.add_n([loss * weight for loss, weight in zip(losses, self._weights)])

    def create_loss(self, features: Any, mode: Any, logits: Any, labels: Any) -> Any:
        split, names = self._split(logits), [head.name for head in self._heads]
        losses = [h.create_loss(features, mode, split[h.name], labels[h.name]) for h in self._heads]
        total = self._merged([loss.training_loss for loss in losses])
        both = [
            {name: getattr(loss, kind) * w for name, loss, w in zip(names, losses, self._weights)}
            for kind in ("unreduced_loss", "weights")
        ]
        processed = {name: loss.processed_labels for name, loss in zip(names, losses)}
        return _heads.LossSpec(total, *both, processed)

    def create_estimator_spec(
        self,
        features: Any,
        mode: Any,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Any = None,
        regularization_losses: Any = None,
    ) -> Any:
        split = self._split(logits)
        specs = {}
        for head in self._heads:
            truth = labels[head.name] if labels else None
            arguments = (features, mode, split[head.name], truth)
            specs[head.name] = head.create_estimator_spec(
                *arguments, train_op_fn=lambda loss: tf1.no_op()
            )
        predictions = {(n, k): v for n, spec in specs.items() for k, v in spec.predictions.items()}
        if mode == _MODES.PREDICT:
            outputs = _outputs(specs)
            return tf_estimator.EstimatorSpec(mode, predictions, export_outputs=outputs)
        loss = self._merged([spec.loss for spec in specs.values()])
        if mode == _MODES.EVAL:
            metrics: dict[str, Any] = {}
            for name, spec in specs.items():
                key = _heads._summary_key(name, _keys.LOSS)
                metrics[key] = tf1.metrics.mean(spec.loss, name=key)
                metrics.update(spec.eval_metric_ops or {})
            return tf_estimator.EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
        if (optimizer is None) == (train_op_fn is None):
            raise ValueError("expected one of train_op_fn and optimizer")
        if optimizer is not None:
            train = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        else:
            train = train_op_fn(loss)
        with tf1.name_scope(""):
            tf1.summary.scalar(_keys.LOSS, loss)
        return tf_estimator.EstimatorSpec(mode, predictions, loss, train)


def _outputs(specs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the exports of all heads; the default export is that of the first head."""
    exports: dict[str, Any] = {}
    predicted: dict[str, Any] = {}
    for name, spec in specs.items():
        for key, output in spec.export_outputs.items():
            exports.setdefault(_DEFAULT, output)
            exports[name if key == _DEFAULT else f"{name}/{key}"] = output
            if key == _PREDICT and isinstance(output, tf_estimator.export.PredictOutput):
                predicted.update({f"{name}/{k}": v for k, v in output.outputs.items()})
    first = next(iter(specs.values())).export_outputs
    exports[_DEFAULT] = first.get(_DEFAULT, exports[_DEFAULT])
    exports[_PREDICT] = tf_estimator.export.PredictOutput(predicted)
    return exports
