"""Builds the script's `tensorflow`: `tf.compat.v1`, completed by the table of old names."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import os
import sys
import types
from typing import Any

from compat._tensorflow import datasets, internals, private, startup, tf1
from compat._tensorflow.layers import without
from compat.errors import UserError
from compat.runtime import interface
from compat.scripts.names import table

TOP = "tensorflow"
VERSIONS = ("__version__", "__git_version__")
_PUBLIC = "tensorflow."
_IN_VAIN = "TF_USE_LEGACY_KERAS set to True, but"
_OF_THE_EXTRA = ("tensorflow_estimator", "tf_keras", "tf_slim")
_LAST_PYTHON = "3.13"  # The newest Python that TensorFlow has wheels for.
_OF_CONTRIB = ("tensorflow.contrib.", "tensorflow_core.contrib.")
_V1 = "compat.v1"  # A script means the same by `tf.compat.v1` as by `tensorflow`.
_NOTHING = object()  # None cannot mark a missing attribute: `tf.newaxis` is None.

_OF_CLUSTERS = ("compat.scripts.clusters.sessions", "compat.scripts.clusters.distributed")

# Modules whose `install` patches TensorFlow in this process, once the script has imported it.
when_loaded: list[str] = []
# Modules whose `install` is called for every script.
FOR_SCRIPTS = (
    "compat.checkpoint.foreign",
    "compat.scripts.shims.arrays",
    "compat.scripts.shims.graphs",
    "compat.scripts.shims.keras_utils",
    "compat.scripts.clusters.sessions",
    "compat.scripts.clusters.distributed",
)


class MissingName(AttributeError):
    """Raised for a known name of TensorFlow or of a package that has no replacement."""


class OldModule(types.ModuleType):
    """A module with its old names: first those of the table, then those of today's module."""

    def __init__(self, name: str, real: Any) -> None:
        super().__init__(name, getattr(real, "__doc__", None))
        # `import tensorflow.contrib.layers` reads it: the import system asks a package for a path.
        self.__path__: list[str] = list(getattr(real, "__path__", []))
        # "contrib.layers." for the module tensorflow.contrib.layers.
        self._below = f"{name}."[len(_PUBLIC) :]
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            # `tf.print` is newer than scripts with `from tensorflow import *`, which mean Python's
            # `print`.
            return [known for known in dir(self) if known[0] != "_" and known != "print"]
        if name[0] == "_" and self._below + name not in table.NAMES:
            return getattr(self._real, name)
        value = _look_up(self._below + name, self._real)
        setattr(self, name, value)  # Cache the value: the next lookup does not call this method.
        return value

    def __dir__(self) -> list[str]:
        below = self._below
        known = {name[len(below) :].split(".")[0] for name in table.NAMES if name.startswith(below)}
        return sorted(known.union(dir(self._real) if self._real else ()))


def _look_up(name: str, real: Any) -> Any:
    """Returns the object that a script sees as `tf.<name>`.

    `real` is today's module that would contain it, or None.
    """
    try:
        return _found(name, real)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if "Keras cannot be imported" in str(error):
            package = "tf_keras"
        if package not in _OF_THE_EXTRA:
            raise
        raise MissingName(without(name, package)) from None


def _found(name: str, real: Any) -> Any:
    if name == _V1:
        return top()
    served = table.find(name)
    last = name.rpartition(".")[2]
    # TensorFlow 1.15 has its own `contrib`; remove this when it is no longer supported.
    is_contrib = f"{getattr(real, '__name__', '')}.".startswith(_OF_CONTRIB)
    value = _attribute(real, last) if is_contrib and not table.adapts(name) else _NOTHING
    if value is _NOTHING and served is not None:
        if not served.by and not table.under(name):
            raise MissingName(_missing(name, served))
        if served.by and name in table.NAMES:
            value = _load(served.by)
    if value is _NOTHING:
        value = _attribute(real, last)
    if value is _NOTHING:
        if table.under(name):
            return OldModule(_PUBLIC + name, None)
        if real is None or (name.startswith("contrib") and not is_contrib):
            raise MissingName(_missing(name, None))
        raise AttributeError(f"module '{real.__name__}' has no attribute '{last}'")
    if not isinstance(value, types.ModuleType):
        return value
    # The submodules of an internal package are imported on access.
    is_inside = hasattr(value, "__path__") and value.__name__.startswith(_PUBLIC + "python")
    is_view = name == _V1.partition(".")[0] or table.under(name) or name in table.NAMES or is_inside
    return OldModule(_PUBLIC + name, value) if is_view else value


def _attribute(real: Any, name: str) -> Any:
    """Returns an attribute (which may be None) or a submodule of a real module, or `_NOTHING`."""
    value = getattr(real, name, _NOTHING)
    if value is not _NOTHING or real is None:
        return value
    if name == "python":
        internals.put_back()
    package = TOP if real is top()._real else getattr(real, "__name__", "")
    if not package.startswith(TOP) or not hasattr(real, "__path__"):
        return _NOTHING
    try:
        return importlib.import_module(f"{package}.{name}")
    except ImportError:
        return _NOTHING


def _missing(name: str, served: table.Served | None) -> str:
    if served is None:
        served = table.Served("", "2.0" if name.startswith("contrib") else "")
    gone = f"gone since TensorFlow {served.gone}" if served.gone else "not known here"
    why = served.note or "nothing serves it here"
    return (
        f"tf.{name} is {gone}: {why}; run the script on its original TensorFlow, or remove the "
        "call (python -m compat check lists all such names)"
    )


def _load(by: str) -> Any:
    module, colon, attribute = by.partition(":")
    if not colon:
        return functools.reduce(getattr, by.split(".")[1:], top())
    if attribute.endswith("()"):
        return getattr(importlib.import_module(module), attribute[:-2])()
    if module.partition(".")[0] in internals.PACKAGES:
        internals.put_back()
    return functools.reduce(getattr, filter(None, attribute.split(".")), internals.load(module))


@functools.lru_cache(maxsize=None)
def top() -> Any:
    """Returns the module that scripts import as `tensorflow`; loads TensorFlow."""
    if TOP not in sys.modules and importlib.util.find_spec(TOP) is None:
        raise UserError(
            f"TensorFlow is not installed for Python {sys.version.split()[0]}; pip install "
            f"tensorflow, which has wheels for Python up to {_LAST_PYTHON}"
        )
    # TensorFlow reads this as it is imported. Only Keras 2 has `tf.layers` and the like.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    with startup.without_notes():
        internals.silence_deprecations()
        # `without` reports it, in the error that names the missing attribute.
        logging.getLogger("tensorflow").addFilter(lambda record: _IN_VAIN not in str(record.msg))
        private.accept_unused()  # TensorFlow 1.15 did not report unused values either.
    runtime = interface.selected()
    if not interface.has_coordinator():
        level = tf1.logging.get_verbosity()
        tf1.logging.set_verbosity(tf1.logging.ERROR)
        tf1.disable_v2_behavior()
        tf1.logging.set_verbosity(level)
        if runtime is not None:  # The modern runtime uses resource variables.
            tf1.enable_resource_variables()
    real = importlib.import_module("tensorflow.compat.v1")
    datasets.give_iterators()
    for name in when_loaded:
        # A runtime provides its own classes for clusters.
        if runtime is None or name not in _OF_CLUSTERS:
            importlib.import_module(name).install()
    return OldModule(TOP, real)


def module(name: str) -> Any:
    """Returns the module that a script imports as `tensorflow...`; raises ImportError."""
    value = top()
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except MissingName as error:
            raise ModuleNotFoundError(str(error), name=name) from None
        except AttributeError:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name) from None
    return value
