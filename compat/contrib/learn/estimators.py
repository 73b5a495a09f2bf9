"""The estimators of `tf.contrib.learn`, built on `tf.estimator`."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Iterable, Sequence

import numpy as np

from compat._tensorflow import tf1
from compat.contrib.learn import metrics as learn_metrics
from compat.contrib.learn.inputs import input_fn_of, pair
from compat.contrib.learn.monitors import replace_monitors_with_hooks
from compat.estimator.package import names as tf_estimator
from compat.estimator.training import trained
from compat.runtime import interface

# Metrics that `tf.estimator` has renamed.
_MEASURES = {
    "accuracy_baseline": "accuracy/baseline_label_mean",
    "label/mean": "labels/actual_label_mean",
    "prediction/mean": "labels/prediction_mean",
    "precision": "precision/positive_threshold_0.500000_mean",
    "recall": "recall/positive_threshold_0.500000_mean",
}


class ModeKeys(tf_estimator.ModeKeys):
    """The modes of a model function."""

    INFER = tf_estimator.ModeKeys.PREDICT


class Predictions(np.ndarray):
    """Predictions as an array, as in 0.8, and as an iterator, as in later releases."""

    _next = 0

    def __next__(self) -> Any:
        if self._next >= len(self):
            raise StopIteration
        self._next += 1
        return self[self._next - 1]


class BaseEstimator:
    """Trains, evaluates and predicts with an estimator `core`, from arrays or input functions."""

    def __init__(self, core: Any, feature_engineering_fn: Callable[..., Any] | None = None) -> None:
        if interface.has_coordinator():
            kind: Any = type(core)
            core.__class__ = trained(kind)
        self.core = core
        self._engineer = feature_engineering_fn

    config = property(lambda self: self.core.config)
    model_dir = property(lambda self: str(self.core.model_dir))
    params = property(lambda self: self.core.params)

    def _features(self, features: Any) -> Any:
        return features

    def _input(self, x: Any, y: Any, input_fn: Any, batch_size: Any, train: bool) -> Any:
        function = input_fn or input_fn_of(x, y, batch_size, train)

        def inputs() -> Any:
            features, labels = pair(function())
            if self._engineer is not None:
                features, labels = self._engineer(features, labels)
            return self._features(features), labels

        return inputs

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[[], Any] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
        hooks: Any = None,
    ) -> BaseEstimator:
        """Trains for `steps` more steps, or until step `max_steps`; returns the estimator."""
        all_hooks = monitors or hooks or []
        all_hooks = all_hooks if isinstance(all_hooks, (list, tuple)) else [all_hooks]
        all_hooks = replace_monitors_with_hooks(all_hooks, self)
        inputs = self._input(x, y, input_fn, batch_size, True)
        self.core.train(inputs, hooks=all_hooks, steps=steps, max_steps=max_steps)
        return self

    partial_fit = fit

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[[], Any] | None = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Returns the metrics of the latest checkpoint, by name."""
        core = learn_metrics.with_metrics(self.core, metrics)
        inputs = self._input(x, y, input_fn, batch_size, False)
        results = dict(core.evaluate(inputs, steps, hooks, checkpoint_path, name))
        results.update({old: results[new] for new, old in _MEASURES.items() if new in results})
        return results

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[[], Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool | None = None,
        iterate_batches: bool = False,
    ) -> Any:
        """Returns a prediction for each example."""
        return self._predictions(self._default(outputs), x, input_fn, batch_size, as_iterable)

    def _default(self, outputs: Sequence[str] | None) -> Callable[[Any], Any]:
        """Returns a function that selects the `outputs` of a prediction; None selects all."""
        if outputs is None:
            return lambda prediction: prediction
        keys = list(outputs)
        return lambda prediction: {key: learn_metrics.output(prediction, key) for key in keys}

    def _predictions(
        self, select: Callable[[Any], Any], x: Any, input_fn: Any, batch_size: Any, iterable: Any
    ) -> Any:
        inputs = _ending(self._input(x, None, input_fn, batch_size, False))
        predictions: Iterable[Any] = (select(each) for each in self.core.predict(inputs))
        if iterable or (iterable is None and input_fn is not None):
            return predictions
        values = list(predictions)
        if values and isinstance(values[0], dict):
            return iter(values) if iterable is None else values
        return np.asarray(values).view(Predictions)

    def export_savedmodel(
        self, export_dir_base: str, serving_input_fn: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Writes a SavedModel; returns its folder."""
        kwargs.pop("default_output_alternative_key", None)
        return self.core.export_saved_model(export_dir_base, serving_input_fn, **kwargs)

    def get_variable_names(self) -> list[str]:
        return list(self.core.get_variable_names())

    def get_variable_value(self, name: str) -> Any:
        return self.core.get_variable_value(name)

    @property
    def weights_(self) -> dict[str, Any]:
        """The values of all variables, by name."""
        return {name: self.get_variable_value(name) for name in self.get_variable_names()}


def _ending(inputs: Callable[[], Any]) -> Callable[[], Any]:
    """Returns an input function that ends after one batch, if the given one returns constants."""

    def limited() -> Any:
        features, _ = inputs()
        graph = tf1.get_default_graph()
        if graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS) or any(
            "Iterator" in operation.type for operation in graph.get_operations()
        ):
            return features
        with tf1.control_dependencies([tf1.train.limit_epochs(tf1.constant(0), 1)]):
            return tf1.nest.map_structure(tf1.identity, features, expand_composites=True)

    return limited


def ModelFnOps(*args: Any, **kwargs: Any) -> Any:
    """Returns the `tf.estimator.EstimatorSpec` of a model function, without alternative outputs."""
    names = tf_estimator.EstimatorSpec._fields
    arguments = {**dict(zip(names, args)), **kwargs, "export_outputs": None}
    return tf_estimator.EstimatorSpec(
        **{name: arguments[name] for name in names if name in arguments}
    )


def _signature(labels: Any) -> Callable[[], Any]:
    """Returns a function that makes a placeholder for labels like these, but of any batch size."""
    if isinstance(labels, tf1.SparseTensor):
        return functools.partial(tf1.sparse_placeholder, labels.dtype)
    shape = None if labels.shape.rank is None else [None, *labels.shape[1:]][: labels.shape.rank]
    return functools.partial(tf1.placeholder, labels.dtype, shape)


class Estimator(BaseEstimator):
    """An estimator of a custom model.

    `model_fn` is a function of features, labels and, by keyword, mode, params, config and
    model_dir; it returns (predictions, loss, train_op) or `ModelFnOps`.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        names = inspect.signature(model_fn).parameters
        known: dict[str, Any] = {}

        def model(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
            if labels is not None:
                known["labels"] = tf1.nest.map_structure(_signature, labels)
            elif mode == ModeKeys.INFER and known:  # The loss is built as well, but not computed.
                labels = tf1.nest.map_structure(lambda make: make(), known["labels"])
            offered = {"mode": mode, "params": params, "config": config, "model_dir": model_dir}
            named = {name: value for name, value in offered.items() if name in names}
            result = model_fn(features, labels, **named)
            if isinstance(result, tuple) and not hasattr(result, "mode"):
                predictions, loss, train_op = result
                return tf_estimator.EstimatorSpec(mode, predictions, loss, train_op)
            return result

        core = tf_estimator.Estimator(model, model_dir, config, params or {})
        super().__init__(core, feature_engineering_fn)


class SKCompat:
    """An estimator with the interface of scikit-learn."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self._estimator = estimator

    def fit(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None, **kw: Any
    ) -> Any:
        """Trains; returns itself."""
        self._estimator.fit(x, y, batch_size=batch_size, steps=steps, **kw)
        return self

    def score(self, x: Any, y: Any, batch_size: int = 128, **kwargs: Any) -> dict[str, Any]:
        """Returns the metrics by name."""
        return self._estimator.evaluate(x, y, batch_size=batch_size, **kwargs)

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """Returns the predictions as arrays."""
        inputs = self._estimator._input(x, None, None, batch_size, False)
        predictions = list(self._estimator.core.predict(inputs))
        if not predictions or not isinstance(predictions[0], dict):
            return np.asarray(predictions)
        return {
            key: np.asarray([learn_metrics.output(each, key) for each in predictions])
            for key in outputs or predictions[0]
        }
