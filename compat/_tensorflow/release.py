"""Provides TensorFlow as `tf` and `tf1`, its 2.x and 1.x names, and facts about the release.

This is the only file that imports TensorFlow; other files in this folder load its modules. The
import happens on first use, since it takes seconds, and a command line, a launcher or a checker
does not need it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
import types
from typing import Any, Callable, Iterator, Sequence

import absl.app
import absl.logging

from compat._tensorflow import layers, startup


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Makes imports of the modules `names` fail inside the context, unless they are loaded.

    So TensorFlow, which imports them if it can, does without them.
    """
    absent: dict[str, Any] = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules.update(absent)  # A module that is None in `sys.modules` cannot be imported.
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)


@contextlib.contextmanager
def _callbacks_deferred() -> Iterator[None]:
    """Defers callbacks that TensorFlow registers with absl until its import is complete.

    absl calls them at once in a program that `absl.app.run` has started. TensorFlow 2.9 would then
    keep eager execution disabled.
    """
    waiting: list[Callable[[], Any]] = []
    register = absl.app.call_after_init
    absl.app.call_after_init = waiting.append
    try:
        yield
    finally:
        absl.app.call_after_init = register
    for callback in waiting:
        register(callback)


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    """Limits the log of TensorFlow to errors during its import, unless the user has set a limit.

    Otherwise it would write a dozen lines for each task. Child processes set their own limit.
    """
    name = "TF_CPP_MIN_LOG_LEVEL"
    is_chosen = name in os.environ
    os.environ.setdefault(name, "2")
    try:
        yield
    finally:
        if not is_chosen:
            del os.environ[name]


# Modules of Keras that TensorFlow 2.7 to 2.12, 2.13 and 2.14, and 2.15 and later import at startup
# if they can. That takes nearly as long as the rest of the import, in every process of a cluster.
# Deferring them loads `tf.keras` on first use, as TensorFlow 2.6 and earlier do.
_KERAS = (
    "keras.api._v2.keras",
    "keras.optimizers",
    "keras.src.optimizers",
    "tf_keras.src.optimizers",
)


def _imported_by_unused_keras() -> Sequence[str]:
    """Returns optional packages that TensorFlow imports only for its internal copy of Keras.

    Since Keras became a package of its own, TensorFlow uses only one base class of this copy. No
    other part of TensorFlow needs these packages, which take a twelfth of the import time.
    """
    spec = importlib.util.find_spec("tensorflow")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        keras = os.path.join(folder, "python", "keras")
        # The move of Keras to a package has left this behind.
        if os.path.isdir(keras) and not os.path.isdir(os.path.join(keras, "preprocessing")):
            return ("h5py", "scipy.sparse")
    return ()


class _LazyModule(types.ModuleType):
    """A module that is imported on the first access to an attribute."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._loaded(), name)
        # Store the value, so that the next lookup does not call this method.
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._loaded())

    def _loaded(self) -> types.ModuleType:
        # Makes calls to a lost peer fail instead of block. TensorFlow reads it when it loads.
        os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
        with contextlib.ExitStack() as stack:
            if "tensorflow" not in sys.modules:
                stack.enter_context(_errors_only())
                stack.enter_context(startup.without_notes())
            stack.enter_context(_callbacks_deferred())
            stack.enter_context(deferred(*_KERAS, *_imported_by_unused_keras()))
            module = importlib.import_module(self.__name__)
        if self.__name__.endswith(".v1"):
            layers.serve(module)
        return module


# Both namespaces exist from 1.15 on.
tf: Any = _LazyModule("tensorflow.compat.v2", "Eager-style names, and resource variables.")
tf1: Any = _LazyModule(
    "tensorflow.compat.v1", "Graphs, sessions, and the optimizers that work on either runtime."
)


def coordinator_module() -> Any:
    """Returns the module that contains `ClusterCoordinator`, or None if TensorFlow has none.

    All releases since 2.4 have it in `tf.distribute.experimental`. 1.15 has no coordinator; its
    `ParameterServerStrategy` is for Estimator.
    """
    return getattr(tf.distribute.experimental, "coordinator", None)


def profiler_module() -> Any:
    """Returns the module that starts and stops the profiler, or None before TensorFlow 2.2."""
    return getattr(getattr(tf, "profiler", None), "experimental", None)


def traced(function: Any) -> Any:
    """Returns `tf.function(function)`, retraced for a new rank but not for each new shape."""
    options = inspect.signature(tf.function).parameters
    # The second name is that of releases until 2.8; remove it with them.
    name = "reduce_retracing" if "reduce_retracing" in options else "experimental_relax_shapes"
    return tf.function(function, autograph=False, **{name: True})


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Limits TensorFlow's Python log to errors, for calls whose other messages are of no use."""
    # TensorFlow's logger and, since about 2.5, absl's, which `absl.app.run` sets to INFO.
    logs = [tf1.logging, absl.logging]
    levels = [log.get_verbosity() for log in logs]
    for log in logs:
        log.set_verbosity(log.ERROR)
    try:
        yield
    finally:
        for log, level in zip(logs, levels):
            log.set_verbosity(level)


def version() -> str:
    """Returns the installed release, such as "2.21.0"; for display, not for branching."""
    return str(importlib.import_module("tensorflow").__version__)
