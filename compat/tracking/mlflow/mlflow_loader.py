"""Serves a SavedModel as MLflow's Python model; a copy of this file goes with each such model.

Without this package, so it imports TensorFlow by itself; graph and session are those of
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
        found = dict(loaded.signature_def)
        self._signature = found.get("serving_default") or found[min(found)]

    def predict(self, data: Any, params: Any = None) -> dict[str, np.ndarray]:
        """Returns the outputs by name for arrays by name, or for the array of the only input."""
        del params
        inputs, outputs = self._signature.inputs, self._signature.outputs
        if not hasattr(data, "keys"):
            data = dict.fromkeys(inputs, data)
        feed = {
            info.name: np.asarray(data[name], tf.as_dtype(info.dtype).as_numpy_dtype)
            for name, info in inputs.items()
        }
        return dict(self._session.run({name: outputs[name].name for name in outputs}, feed))
