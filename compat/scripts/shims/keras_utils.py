"""`tf.compat.v1.keras.utils` of Keras 2, if TensorFlow has Keras 3 or none."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from typing import Any
from unittest import mock

from compat._tensorflow import tf, tf1
from compat._tensorflow.layers import without
from compat.errors import UserError
from compat.scripts.shims import variable_tracking
from compat.scripts.view import namespace

_MODES = ("constant", "num_random_ops")
_MODULE = "tensorflow.compat.v1"


class DeterministicRandomTestTool:
    """Gives random operations the same seeds in a graph and in eager mode.

    Args:
      seed: The seed of all operations.
      mode: "constant" for the same seed of each operation, or "num_random_ops" for the number of
        random operations before it.

    Attributes:
      operation_seed: The seed of the next operation.
    """

    def __init__(self, seed: int = 42, mode: str = "constant") -> None:
        if mode not in _MODES:
            raise UserError(f"mode is {mode!r}, expected one of {', '.join(_MODES)}")
        self._seed, self._mode = seed, mode
        self.operation_seed = 0
        self._used: set[int] = set()

    def scope(self) -> Any:
        """Returns a context in which TensorFlow takes the seeds of this object."""
        tf.random.set_seed(self._seed)
        return mock.patch.object(sys.modules[tf1.get_seed.__module__], "get_seed", self._next)

    def _next(self, op_seed: int | None) -> tuple[int, int]:
        del op_seed
        seed = self.operation_seed
        if self._mode == "constant":
            tf.random.set_seed(seed)
        elif seed in self._used:
            raise UserError(
                f"operation_seed {seed} was used before; set it to a number that was not, so that "
                "random numbers are the same in a graph and in eager mode"
            )
        else:
            self._used.add(seed)
            self.operation_seed += 1
        return self._seed, seed


NAMES = {
    "DeterministicRandomTestTool": DeterministicRandomTestTool,
    "get_or_create_layer": variable_tracking.get_or_create_layer,
    "track_tf1_style_variables": variable_tracking.track_tf1_style_variables,
}


class _Keras(types.ModuleType):
    """TensorFlow's lazy module `keras`, with additional names in `utils`."""

    def __init__(self, lazy: Any) -> None:
        super().__init__("keras")
        self._lazy = lazy
        self.utils = _Utils(lazy)

    def __getattr__(self, name: str) -> Any:
        return _attribute(self._lazy, "keras", name)

    def __dir__(self) -> list[str]:
        return dir(self._lazy)


class _Utils(_Keras):
    def __init__(self, lazy: Any) -> None:
        types.ModuleType.__init__(self, "keras.utils")
        self._lazy = lazy
        self.__dict__.update(NAMES)

    def __getattr__(self, name: str) -> Any:
        return _attribute(_attribute(self._lazy, "keras", "utils"), "keras.utils", name)

    def __dir__(self) -> list[str]:
        return sorted([*NAMES, *dir(self._lazy.utils)])


def _attribute(module: Any, shown: str, name: str) -> Any:
    # Python asks every module for such names; Keras should not be loaded for that.
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(module, name)
    except ImportError:
        raise namespace.MissingName(without(f"{shown}.{name}", "tf_keras")) from None


def install() -> None:
    """Adds the names to `tf.compat.v1.keras.utils` unless TensorFlow's Keras is Keras 2."""
    is_2 = os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")
    if is_2 and importlib.util.find_spec("tf_keras") is not None:
        return
    modules: list[Any] = [importlib.import_module(_MODULE), tf.compat.v1]
    for module in modules:
        lazy = vars(module).get("keras")
        # TensorFlow has had this loader since 2.16, the first release with Keras 3.
        if type(lazy).__name__ == "KerasLazyLoader":
            module.keras = _Keras(lazy)
