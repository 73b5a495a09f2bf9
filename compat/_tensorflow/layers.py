"""`tf1.layers` and `tf1.nn.rnn_cell`, which TensorFlow 2.16 and later have with Keras 2 only.

In these releases `tf.keras` is Keras 3, and both modules refuse every name, unless the whole
process uses Keras 2 (`TF_USE_LEGACY_KERAS`). This module provides the names from the package
tf-keras on first use, and does not change `tf.keras`.
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
# Each tf-keras supports one line of TensorFlow; raise the version when the next tf-keras is
# released.
_LAST_KERAS_2 = "2.21.0"
_LEGACY = "tf_keras.api._v1.keras.__internal__.legacy."


class MissingPackage(UserError, AttributeError):
    """The package that provides a name is not installed."""


class _OfKeras2(types.ModuleType):
    """A module of Keras 2 that is imported on the first access to one of its names."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._loaded(), name)

    def __dir__(self) -> list[str]:
        return dir(self._loaded())

    def _loaded(self) -> types.ModuleType:
        # The warnings recommend layers of Keras 3, which do not support parameter servers.
        warnings.filterwarnings("ignore", r"`tf\.(layers|nn\.rnn_cell)\.", UserWarning)
        try:
            return importlib.import_module(_LEGACY + self.__name__.rpartition(".")[2])
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "tf_keras":
                raise
            raise MissingPackage(without(self.__name__[len(_V1) :], "tf_keras")) from None


def without(name: str, package: str) -> str:
    """Returns the error message for a name whose package is not installed."""
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
    """Makes a tf-keras before 2.16 count as missing, since a newer TensorFlow cannot import it.

    pip installs such a version if no other version allows the installed TensorFlow.
    """
    # The module exists from Python 3.8 on, which these releases need.
    from importlib import metadata

    try:
        version = metadata.version("tf-keras")
    except metadata.PackageNotFoundError:
        return
    if int(version.split(".")[1]) < 16 <= int(release.split(".")[1]):
        sys.modules["tf_keras"] = None  # type: ignore[assignment]


def serve(v1: Any) -> None:
    """Replaces `layers` and `nn.rnn_cell` of `tf.compat.v1`, if they refuse every name.

    The replacements provide the names of Keras 2 from tf-keras.
    """
    if type(vars(v1).get("keras")).__name__ == "KerasLazyLoader":  # The loader exists since 2.15.
        _hide_unfit(v1.__version__)
    if os.environ.get("TF_USE_LEGACY_KERAS", "") in ("1", "true", "True"):
        return  # TensorFlow itself imports them from tf-keras.
    for parent, name in ((v1, "layers"), (v1.nn, "nn.rnn_cell")):
        last = name.rpartition(".")[2]
        if type(getattr(parent, last, None)).__name__ == "KerasLazyLoader":
            setattr(parent, last, _OfKeras2(_V1 + name))
