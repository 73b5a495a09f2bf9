"""The canned estimators of `tf.contrib.learn`: linear, deep, and combined."""

from __future__ import annotations

import functools
from typing import Any, Callable, Mapping

from compat._tensorflow import tf1
from compat.contrib import layers
from compat.contrib.learn import metrics as learn_metrics
from compat.contrib.learn.estimators import BaseEstimator
from compat.contrib.opt.wrappers import Around, ClippedByGlobalNorm
from compat.estimator.package import names as tf_estimator

# The loss was the mean over a batch; today the default is the sum.
_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE


class _Counting(Around):
    """An optimizer that increments the global step after each update."""

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        with tf1.control_dependencies([self._opt.apply_gradients(*args, **kwargs)]):
            return tf1.assign_add(tf1.train.get_global_step(), 1).op


def _wrapped(kind: Any, optimizer: Any, *args: Any) -> Callable[[], Any]:
    return lambda: kind(optimizer() if callable(optimizer) else optimizer, *args)


_adagrad = functools.partial(tf1.train.AdagradOptimizer, 0.05)
_ftrl = functools.partial(tf1.train.FtrlOptimizer, 0.2)

# Arguments that `tf.estimator` has renamed.
_RENAMED = {"weight_column_name": "weight_column", "label_keys": "label_vocabulary"}
# Arguments that do not affect model and loss, or were off by default.
_WITHOUT_EFFECT = (
    "embedding_lr_multipliers",
    "enable_centered_bias",
    "input_layer_min_slice_size",
    "joint_linear_weights",
    "_joint_weight",
)


# Each optimizer of a combined estimator counts its own steps.
_PARTS = ("linear", "dnn")


class _Canned(BaseEstimator):
    _kind = ""  # The name of the class in `tf.estimator`.
    _key = ""  # The key of the default prediction.
    _order: tuple[str, ...] = ()  # The names of positional arguments.
    _optimizers: Mapping[str, Callable[[], Any]] = {}  # Default optimizers by argument.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(zip(self._order, args))
        if kwargs.get("feature_columns") is not None:
            kwargs["feature_columns"] = list(kwargs["feature_columns"])
        engineer = kwargs.pop("feature_engineering_fn", None)
        norm = kwargs.pop("gradient_clip_norm", None)
        if norm is not None:
            for name, usual in self._optimizers.items():
                kwargs[name] = _wrapped(ClippedByGlobalNorm, kwargs.get(name) or usual, norm)
        counts_once = kwargs.pop("fix_global_step_increment_bug", False)
        if not counts_once and all(kwargs.get(f"{part}_feature_columns") for part in _PARTS):
            usual = self._optimizers["dnn_optimizer"]
            kwargs["dnn_optimizer"] = _wrapped(_Counting, kwargs.get("dnn_optimizer") or usual)
        options = {
            _RENAMED.get(name, name): value
            for name, value in kwargs.items()
            if value is not None and value != "" and name not in _WITHOUT_EFFECT
        }
        core = getattr(tf_estimator, self._kind)(loss_reduction=_MEAN, **options)
        super().__init__(core, engineer)

    def _features(self, features: Any) -> Any:
        return layers.by_name(features)

    def _default(self, outputs: Any) -> Callable[[Any], Any]:
        if outputs is not None:
            return super()._default(outputs)
        return lambda prediction: learn_metrics.output(prediction, self._key)

    def _predict_usual(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = None
    ) -> Any:
        """Returns the predicted class or value of each example."""
        return self.predict(x, input_fn, batch_size, None, as_iterable)


class _Classifier(_Canned):
    _key = "classes"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._has_names = kwargs.get("label_keys") is not None
        super().__init__(*args, **kwargs)

    def _default(self, outputs: Any) -> Callable[[Any], Any]:
        if outputs is None and self._has_names:
            return lambda prediction: prediction["classes"][0]
        return super()._default(outputs)

    predict_classes = _Canned._predict_usual

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = None
    ) -> Any:
        """Returns the class probabilities of each example."""
        return self._predictions(
            lambda prediction: prediction["probabilities"], x, input_fn, batch_size, as_iterable
        )


class _Regressor(_Canned):
    _key = "scores"
    predict_scores = _Canned._predict_usual


def _canned(kind: str, order: tuple[str, ...], **optimizers: Any) -> Any:
    """Returns the estimator class `kind`; `order` names its positional arguments, as until 1.15."""
    base = _Classifier if kind.endswith("Classifier") else _Regressor
    return type(kind, (base,), {"_kind": kind, "_order": order, "_optimizers": optimizers})


_PLACES = ("feature_columns", "model_dir")
_LINEAR = ("weight_column_name", "optimizer", "gradient_clip_norm")
_DEEP = ("weight_column_name", "optimizer", "activation_fn", "dropout")
_BOTH = {"dnn_optimizer": _adagrad, "linear_optimizer": _ftrl}

LinearClassifier = _canned("LinearClassifier", (*_PLACES, "n_classes", *_LINEAR), optimizer=_ftrl)
LinearRegressor = _canned("LinearRegressor", (*_PLACES, *_LINEAR), optimizer=_ftrl)
DNNClassifier = _canned(
    "DNNClassifier", ("hidden_units", *_PLACES, "n_classes", *_DEEP), optimizer=_adagrad
)
DNNRegressor = _canned("DNNRegressor", ("hidden_units", *_PLACES, *_DEEP), optimizer=_adagrad)
DNNLinearCombinedClassifier = _canned(
    "DNNLinearCombinedClassifier", ("model_dir", "n_classes"), **_BOTH
)
DNNLinearCombinedRegressor = _canned("DNNLinearCombinedRegressor", ("model_dir",), **_BOTH)
