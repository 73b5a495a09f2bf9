"""`tf1.layers` and `tf1.nn.rnn_cell`, which TensorFlow 2.16 and later have with Keras 2 only.

There `tf.keras` is Keras 3, and both modules refuse every name, unless the whole process is set to
Keras 2 (`TF_USE_LEGACY_KERAS`). Here they come from the package tf-keras on first use, and
`tf.keras` stays what it is.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
import warnings
from typing import Any

from compat.errors import UserError

_V1 = "tensorflow.compat.v1."
# Each tf-keras allows one line of TensorFlow; raise it when the next one is there.
_LAST_KERAS_2 = "2.21.0"
_LEGACY = "tf_keras.api._v1.keras.__internal__.legacy."


class MissingPackage(UserError, AttributeError):
    """The package that serves a name is not installed."""


class _OfKeras2(types.ModuleType):
    """A module of Keras 2 that is imported on the first access to one of its names."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._loaded(), name)

    def __dir__(self) -> list[str]:
        return dir(self._loaded())

    def _loaded(self) -> types.ModuleType:
        # They recommend layers of Keras 3, which parameter servers do not support.
        warnings.filterwarnings("ignore", r"`tf\.(layers|nn\.rnn_cell)\.", UserWarning)
        try:
            return importlib.import_module(_LEGACY + self.__name__.rpartition(".")[2])
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "tf_keras":
                raise
            raise MissingPackage(without(self.__name__[len(_V1) :], "tf_keras")) from None


def without(name: str, package: str) -> str:
    """Returns what is said of a name whose package is not installed."""
    how = "is not installed; pip install 'compat-experiments[scripts]'"
    installed = str(importlib.import_module("tensorflow").__version__)
    line = ".".join(installed.split(".")[:2])
    if package == "tf_keras" and int(line.partition(".")[2]) > int(_LAST_KERAS_2.split(".")[1]):
        how = (
            f"has no release for TensorFlow {line} yet; pip install --no-deps "
            f"tf-keras=={_LAST_KERAS_2}, which works there, or use TensorFlow {_LAST_KERAS_2[:-2]}"
        )
    return f"tf.{name} is served by the package {package}, which {how}"


def _hide_unfit(release: str) -> None:
    """Makes a tf-keras of before 2.16, which a newer TensorFlow cannot import, count as missing.

    pip installs it where no other one allows the installed TensorFlow.
    """
    from importlib import metadata  # Of Python 3.8, which these releases need.

    try:
        version = metadata.version("tf-keras")
    except metadata.PackageNotFoundError:
        return
    if int(version.split(".")[1]) < 16 <= int(release.split(".")[1]):
        sys.modules["tf_keras"] = None  # type: ignore[assignment]


def serve(v1: Any) -> None:
    """Gives `tensorflow.compat.v1` its layers and cells where it would refuse their names."""
    if type(vars(v1).get("keras")).__name__ == "KerasLazyLoader":  # Since 2.15.
        _hide_unfit(v1.__version__)
    if os.environ.get("TF_USE_LEGACY_KERAS", "") in ("1", "true", "True"):
        return  # TensorFlow itself takes them from tf-keras.
    for parent, name in ((v1, "layers"), (v1.nn, "nn.rnn_cell")):
        last = name.rpartition(".")[2]
        if type(getattr(parent, last, None)).__name__ == "KerasLazyLoader":
            setattr(parent, last, _OfKeras2(_V1 + name))
