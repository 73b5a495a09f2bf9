"""Serves a SavedModel as a Python model of MLflow; each such model has a copy of this file.

The copy runs without this package, so it imports TensorFlow itself. Graph and session are those of
`tf.compat.v1`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


def _load_pyfunc(path: str) -> SavedModel:
    return SavedModel(path)


class SavedModel:
    """A model with `predict`, as MLflow calls it."""

    def __init__(self, path: str) -> None:
        self._session = tf.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            loaded = tf.saved_model.load(self._session, ["serve"], path)
        signatures = dict(loaded.signature_def)
        self._signature = signatures.get("serving_default") or signatures[min(signatures)]

    def predict(self, data: Any, params: Any = None) -> dict[str, np.ndarray]:
        """Returns the outputs by name; `data` is a dict of arrays, or the only input."""
        del params
        inputs, outputs = self._signature.inputs, self._signature.outputs
        if not hasattr(data, "keys"):
            data = dict.fromkeys(inputs, data)
        feed = {
            info.name: np.asarray(data[name], tf.as_dtype(info.dtype).as_numpy_dtype)
            for name, info in inputs.items()
        }
        return dict(self._session.run({name: outputs[name].name for name in outputs}, feed))
