"""`tf.contrib.tpu`: its estimator, which trains on CPUs and GPUs with `use_tpu=False`.

If a program asks for a TPU without naming one, and there is none, it trains on CPUs and GPUs and
logs that.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any

from compat._tensorflow import internals, tf1

_PACKAGE = "tensorflow_estimator.python.estimator.tpu."
# Modules for embeddings and sessions on TPUs that its files import, and TensorFlow removed.
_GONE = ("session_support", "tpu_embedding", "tpu_embedding_gradient")


class _Gone(types.ModuleType):
    """Replaces a module that TensorFlow removed: its classes take any arguments and do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        setattr(self, name, type(name, (), {"__init__": lambda self, *_, **__: None}))
        return vars(self)[name]


def _load() -> tuple[Any, ...]:
    internals.put_back()
    package: Any = importlib.import_module("tensorflow.python.tpu")
    for last in _GONE:
        name = f"{package.__name__}.{last}"
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = _Gone(name)
            setattr(package, last, sys.modules[name])
    names = ("tpu_config", "tpu_estimator", "_tpu_estimator_embedding")
    return tuple(importlib.import_module(_PACKAGE + name) for name in names)


tpu_config, tpu_estimator, _embedding = _load()
InputPipelineConfig: Any = tpu_config.InputPipelineConfig
RunConfig: Any = tpu_config.RunConfig
TPUConfig: Any = tpu_config.TPUConfig
TPUEstimatorSpec: Any = tpu_estimator.TPUEstimatorSpec
_TPUEstimator: Any = tpu_estimator.TPUEstimator


@functools.lru_cache(maxsize=None)
def _has_tpu() -> bool:
    """Returns whether this machine has a TPU; logs a line if it has none."""
    devices = tf1.config.experimental.list_physical_devices()
    has_one = any(device.device_type.startswith("TPU") for device in devices)
    if not has_one:
        print("compat: there is no TPU here; what asks for one runs on the CPU", flush=True)
    return has_one


def _is_here(cluster_resolver: Any = None) -> bool:
    """Returns whether `cluster_resolver` has the address of a TPU, or this machine has a TPU."""
    return bool(cluster_resolver and cluster_resolver.master()) or _has_tpu()


def TPUClusterResolver(tpu: Any = None, *args: Any, **options: Any) -> Any:  # noqa: N802
    """Returns the cluster of a TPU; that of this process, if no TPU is named and none is found."""
    resolver = tf1.distribute.cluster_resolver.TPUClusterResolver
    try:
        return resolver(tpu, *args, **options)
    except ValueError:  # The resolver finds no name of a TPU.
        if tpu or _has_tpu():
            raise
        return resolver("local", *args, **options)


def initialize_tpu_system(cluster_resolver: Any = None) -> Any:
    """Prepares the TPU, if there is one."""
    if _is_here(cluster_resolver):
        return tf1.tpu.experimental.initialize_tpu_system(cluster_resolver)
    return None


def TPUStrategy(cluster_resolver: Any = None, *args: Any, **options: Any) -> Any:  # noqa: N802
    """Returns the strategy of a TPU, or of the CPU if there is none."""
    if _is_here(cluster_resolver):
        return tf1.distribute.experimental.TPUStrategy(cluster_resolver, *args, **options)
    return tf1.distribute.OneDeviceStrategy("/cpu:0")


class TPUEstimator(_TPUEstimator):
    """TensorFlow's `TPUEstimator`, with `use_tpu=False` if there is no TPU."""

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        use_tpu: bool = True,
        *args: Any,
        **options: Any,
    ) -> None:
        if use_tpu and not getattr(config, "master", "") and not _has_tpu():
            use_tpu = False
            if options.get("embedding_config_spec"):
                print(
                    "compat: the optimizer of the model function trains the embeddings as well, "
                    "as that of EmbeddingConfigSpec does on a TPU only",
                    flush=True,
                )
        super().__init__(model_fn, model_dir, config, params, use_tpu, *args, **options)


class CrossShardOptimizer(tf1.tpu.CrossShardOptimizer):
    """TensorFlow's `CrossShardOptimizer`; outside of TPU shards it leaves gradients unchanged."""

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        context = importlib.import_module("tensorflow.python.tpu.tpu_function").get_tpu_context()
        is_outside = context.number_of_shards is None
        apply = self._opt.apply_gradients if is_outside else super().apply_gradients
        return apply(grads_and_vars, global_step, name)


def __getattr__(name: str) -> Any:
    """Returns an attribute that this module does not define.

    It is a name in `tf.tpu`, a name in the TPU estimator's module for embeddings, or a module in
    `tensorflow.python.tpu`.
    """
    for place in (tf1.tpu, _embedding):
        if hasattr(place, name):
            return getattr(place, name)
    try:
        return importlib.import_module(f"tensorflow.python.tpu.{name}")
    except ImportError:
        raise AttributeError(f"TensorFlow has no {name} for TPUs") from None
