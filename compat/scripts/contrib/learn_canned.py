"""The canned estimators of `tf.contrib.learn`: linear, deep, and combined."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from compat._tensorflow import tf1
from compat.scripts.contrib import feature_columns as columns
from compat.scripts.contrib import learn_metrics
from compat.scripts.contrib.learn_estimators import BaseEstimator
from compat.scripts.contrib.learn_run import estimators

# The loss was the mean over a batch; today the default is the sum.
_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE


class _Clipped(tf1.train.Optimizer):
    """An optimizer that clips gradients by global norm."""

    def __init__(self, optimizer: Any, norm: float) -> None:
        super().__init__(use_locking=False, name="ClipByNorm")
        self._optimizer, self._norm = optimizer, norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        gradients, variables = zip(*grads_and_vars)
        clipped, _ = tf1.clip_by_global_norm(gradients, self._norm)
        return self._optimizer.apply_gradients(list(zip(clipped, variables)), *args, **kwargs)


def _clipped(optimizer: Any, norm: float) -> Callable[[], Any]:
    return lambda: _Clipped(optimizer() if callable(optimizer) else optimizer, norm)


def _adagrad() -> Any:
    return tf1.train.AdagradOptimizer(0.05)


def _ftrl() -> Any:
    return tf1.train.FtrlOptimizer(0.2)


# Arguments that have another name in `tf.estimator`.
_RENAMED = {"weight_column_name": "weight_column", "label_keys": "label_vocabulary"}
# Arguments that do not affect model and loss, or were off by default.
_WITHOUT_EFFECT = (
    "embedding_lr_multipliers",
    "enable_centered_bias",
    "fix_global_step_increment_bug",
    "input_layer_min_slice_size",
    "joint_linear_weights",
    "_joint_weight",
)


class _Canned(BaseEstimator):
    _kind = ""
    _optimizers: Mapping[str, Callable[[], Any]] = {"optimizer": _adagrad}

    def __init__(self, **kwargs: Any) -> None:
        engineer = kwargs.pop("feature_engineering_fn", None)
        norm = kwargs.pop("gradient_clip_norm", None)
        for name, usual in self._optimizers.items():
            if norm is not None:
                kwargs[name] = _clipped(kwargs.get(name) or usual, norm)
        options = {
            _RENAMED.get(name, name): value
            for name, value in kwargs.items()
            if value is not None and value != "" and name not in _WITHOUT_EFFECT
        }
        core = getattr(estimators(), self._kind)(loss_reduction=_MEAN, **options)
        super().__init__(core, engineer)

    def _features(self, features: Any) -> Any:
        return columns.by_name(features)


class _Classifier(_Canned):
    def __init__(self, **kwargs: Any) -> None:
        self._has_names = kwargs.get("label_keys") is not None
        super().__init__(**kwargs)

    def _default(self, outputs: Any) -> Callable[[Any], Any]:
        if outputs is not None:
            return super()._default(outputs)
        if self._has_names:
            return lambda found: found["classes"][0]
        return lambda found: learn_metrics.output(found, "classes")

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = None
    ) -> Any:
        """Returns the predicted class of each example."""
        return self.predict(x, input_fn, batch_size, None, as_iterable)

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = None
    ) -> Any:
        """Returns the class probabilities of each example."""
        return self._predictions(
            lambda found: found["probabilities"], x, input_fn, batch_size, as_iterable
        )


class _Regressor(_Canned):
    def _default(self, outputs: Any) -> Callable[[Any], Any]:
        if outputs is not None:
            return super()._default(outputs)
        return lambda found: learn_metrics.output(found, "scores")

    def predict_scores(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = None
    ) -> Any:
        """Returns the predicted value of each example."""
        return self.predict(x, input_fn, batch_size, None, as_iterable)


class LinearClassifier(_Classifier):
    """Accepts the arguments of TensorFlow 0.8 to 1.15."""

    _kind = "LinearClassifier"
    _optimizers = {"optimizer": _ftrl}

    def __init__(
        self, feature_columns: Any, model_dir: Any = None, n_classes: int = 2, *args: Any, **kw: Any
    ) -> None:
        kw.update(zip(("weight_column_name", "optimizer", "gradient_clip_norm"), args))
        super().__init__(
            feature_columns=list(feature_columns), model_dir=model_dir, n_classes=n_classes, **kw
        )


class LinearRegressor(_Regressor):
    """Accepts the arguments of TensorFlow 0.8 to 1.15."""

    _kind = "LinearRegressor"
    _optimizers = {"optimizer": _ftrl}

    def __init__(self, feature_columns: Any, model_dir: Any = None, *args: Any, **kw: Any) -> None:
        kw.update(zip(("weight_column_name", "optimizer", "gradient_clip_norm"), args))
        super().__init__(feature_columns=list(feature_columns), model_dir=model_dir, **kw)


class DNNClassifier(_Classifier):
    """Accepts the arguments of TensorFlow 0.8 to 1.15."""

    _kind = "DNNClassifier"

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any = None,
        model_dir: Any = None,
        n_classes: int = 2,
        *args: Any,
        **kw: Any,
    ) -> None:
        kw.update(zip(("weight_column_name", "optimizer", "activation_fn", "dropout"), args))
        super().__init__(
            hidden_units=hidden_units,
            feature_columns=list(feature_columns),
            model_dir=model_dir,
            n_classes=n_classes,
            **kw,
        )


class DNNRegressor(_Regressor):
    """Accepts the arguments of TensorFlow 0.8 to 1.15."""

    _kind = "DNNRegressor"

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any = None,
        model_dir: Any = None,
        *args: Any,
        **kw: Any,
    ) -> None:
        kw.update(zip(("weight_column_name", "optimizer", "activation_fn", "dropout"), args))
        super().__init__(
            hidden_units=hidden_units,
            feature_columns=list(feature_columns),
            model_dir=model_dir,
            **kw,
        )


class DNNLinearCombinedClassifier(_Classifier):
    """Accepts the arguments of TensorFlow 0.8 to 1.15."""

    _kind = "DNNLinearCombinedClassifier"
    _optimizers = {"dnn_optimizer": _adagrad, "linear_optimizer": _ftrl}

    def __init__(self, model_dir: Any = None, n_classes: int = 2, **kwargs: Any) -> None:
        super().__init__(model_dir=model_dir, n_classes=n_classes, **kwargs)


class DNNLinearCombinedRegressor(_Regressor):
    """Accepts the arguments of TensorFlow 0.8 to 1.15."""

    _kind = "DNNLinearCombinedRegressor"
    _optimizers = {"dnn_optimizer": _adagrad, "linear_optimizer": _ftrl}

    def __init__(self, model_dir: Any = None, **kwargs: Any) -> None:
        super().__init__(model_dir=model_dir, **kwargs)
