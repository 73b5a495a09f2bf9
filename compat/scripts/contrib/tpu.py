"""`tf.contrib.tpu`: its estimator, which trains on CPUs and GPUs with `use_tpu=False`."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from compat._tensorflow import internals, tf1

_PACKAGE = "tensorflow_estimator.python.estimator.tpu."
# Parts of TensorFlow that it imports, for embeddings and sessions on TPUs, and that are gone.
_GONE = ("session_support", "tpu_embedding", "tpu_embedding_gradient")


class _Gone(types.ModuleType):
    """A module of classes without anything in them."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return type(name, (), {})


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
    return tuple(importlib.import_module(_PACKAGE + n) for n in ("tpu_config", "tpu_estimator"))


tpu_config, tpu_estimator = _load()
InputPipelineConfig: Any = tpu_config.InputPipelineConfig
RunConfig: Any = tpu_config.RunConfig
TPUConfig: Any = tpu_config.TPUConfig
TPUEstimator: Any = tpu_estimator.TPUEstimator
TPUEstimatorSpec: Any = tpu_estimator.TPUEstimatorSpec


def __getattr__(name: str) -> Any:
    """Returns any other name from `tf.tpu`, or a module of TensorFlow's."""
    if hasattr(tf1.tpu, name):
        return getattr(tf1.tpu, name)
    try:
        return importlib.import_module(f"tensorflow.python.tpu.{name}")
    except ImportError:
        raise AttributeError(f"TensorFlow has no {name} for TPUs") from None
