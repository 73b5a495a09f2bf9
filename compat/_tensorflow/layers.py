"""`tf1.layers` and `tf1.nn.rnn_cell`, which TensorFlow 2.16 and later have with Keras 2 only.

There `tf.keras` is Keras 3, and both modules refuse every name, unless the whole process is set to
Keras 2 (`TF_USE_LEGACY_KERAS`). Here they come from the package tf-keras on first use, and
`tf.keras` stays what it is.
"""

from __future__ import annotations

import importlib
import os
import types
import warnings
from typing import Any

from compat.errors import UserError

_LEGACY = "tf_keras.api._v1.keras.__internal__.legacy."


class _OfKeras2(types.ModuleType):
    """A module of Keras 2 that is imported on the first access to one of its names."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._loaded(name), name)

    def __dir__(self) -> list[str]:
        return dir(self._loaded(""))

    def _loaded(self, name: str) -> types.ModuleType:
        short = self.__name__.rpartition(".")[2]
        # They recommend layers of Keras 3, which parameter servers do not support.
        warnings.filterwarnings("ignore", r"`tf\.(layers|nn\.rnn_cell)\.", UserWarning)
        try:
            return importlib.import_module(_LEGACY + short)
        except ModuleNotFoundError as error:
            if error.name != "tf_keras":
                raise
            where = {"rnn_cell": "nn.rnn_cell"}.get(short, short)
            raise UserError(
                f"tf1.{where}.{name} is served by the package tf_keras, which is not installed; "
                "pip install 'compat-experiments[scripts]', or write the layer with get_variable"
            ) from None


def serve(v1: Any) -> None:
    """Gives `tensorflow.compat.v1` its layers and cells where it would refuse their names."""
    if os.environ.get("TF_USE_LEGACY_KERAS", "") in ("1", "true", "True"):
        return  # TensorFlow itself takes them from tf-keras.
    for parent, name in ((v1, "layers"), (v1.nn, "rnn_cell")):
        if type(getattr(parent, name, None)).__name__ == "KerasLazyLoader":
            setattr(parent, name, _OfKeras2(f"tensorflow.compat.v1.{name}"))
