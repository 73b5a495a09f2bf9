"""TensorFlow under two stable names, and the facts about the installed release.

The only file that imports TensorFlow. It does so on first use, since the import takes seconds and
a command line, a launcher or a checker does not need it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import types
from typing import Any, Callable, Iterator

import absl.app
import absl.logging

from compat._tensorflow import startup


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Makes optional imports of modules that are not loaded yet fail inside."""
    absent: dict[str, Any] = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules.update(absent)  # A module that is None cannot be imported.
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
    """Limits the log of the TensorFlow that is loaded inside to errors, unless the user limits it.

    Else it writes a dozen lines for each task. Processes that this one starts choose on their own.
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


class _LazyModule(types.ModuleType):
    """A module that is imported on the first access to an attribute."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._loaded(), name)
        setattr(self, name, value)  # The next lookup does not come here.
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
            stack.enter_context(deferred(*_KERAS))
            return importlib.import_module(self.__name__)


# Both namespaces exist from 1.15 on.
tf: Any = _LazyModule("tensorflow.compat.v2", "Eager-style names, and resource variables.")
tf1: Any = _LazyModule(
    "tensorflow.compat.v1", "Graphs, sessions, and the optimizers that work on either runtime."
)


def coordinator_module() -> Any:
    """Returns the module that holds `ClusterCoordinator`, or None where TensorFlow has none.

    1.15 has another class with the strategy's name, for Estimator. All later releases have both
    under `experimental`, as 2.4 and 2.5 do.
    """
    return getattr(tf.distribute.experimental, "coordinator", None)


def profiler_module() -> Any:
    """Returns the module that starts and stops the profiler, or None before TensorFlow 2.2."""
    return getattr(getattr(tf, "profiler", None), "experimental", None)


def profile_class() -> Any:
    """Returns the protobuf of a profile, `XSpace`, which has no public name.

    It is in the first module until 2.16 or so, in the second since 2.11 or so.
    """
    for package in ("core", "tsl"):
        with contextlib.suppress(ImportError):
            name = f"tensorflow.{package}.profiler.protobuf.xplane_pb2"
            return importlib.import_module(name).XSpace
    return None


def traced(function: Any) -> Any:
    """Returns `tf.function(function)`, retraced for a new rank but not for each new shape."""
    options = inspect.signature(tf.function).parameters
    # The second until 2.8; remove it with the last of them.
    name = "reduce_retracing" if "reduce_retracing" in options else "experimental_relax_shapes"
    return tf.function(function, autograph=False, **{name: True})


def per_worker_values(coordinator: Any, make: Callable[[], Any], spec: Any = None) -> Any:
    """Returns what `make` returns on each worker, of the type `spec`, for a scheduled function.

    `make` is called in this process once for each worker, with the worker's device around it, and
    again for one that was replaced. `create_per_worker_dataset`, the public way, calls its function
    once for all, so that none can be given its own shard (2.4 to 2.21).
    """
    values = coordinator._create_per_worker_resources(make)
    spec = tf.TensorSpec([], tf.int64) if spec is None else spec
    for value in values._values:
        if hasattr(value, "_set_type_spec"):  # Until 2.5 or so.
            value._set_type_spec(spec)
        else:
            value._type_spec = spec
    return values


def deferred_captures(graph: Any) -> list[Any]:
    """Returns the functions whose values a graph is given at each call; until 2.12 or so."""
    return list(getattr(graph, "deferred_external_captures", []))


def variable_store() -> list[Any]:
    """Returns the list in which the default graph keeps what `get_variable` has made.

    The collection has had no public name, and no other name, from 1.15 to 2.21. Where it is
    another, each step makes its variables anew.
    """
    found: list[Any] = tf1.get_collection_ref(("__variable_store",))
    return found


def scope_counts() -> dict[str, int]:
    """Returns how often each variable scope of the default graph was opened; to be changed.

    The collection is as old. Where it is another, layers without a name share their variables.
    """
    tf1.get_variable_scope()  # Which makes what is in it.
    found = tf1.get_collection(("__varscope",))
    counts: dict[str, int] = getattr(found[0], "variable_scopes_count", {}) if found else {}
    return counts


def keep_functions() -> None:
    """Keeps traced functions on servers, and in memory, after Python has deleted them.

    To remove them logs an error for a server that has exited, and blocks the interpreter forever
    for one that does not answer.
    """
    context: Any = importlib.import_module("tensorflow.python.eager.context")
    if hasattr(context.Context, "remove_function"):
        context.Context.remove_function = lambda self, name: None


def session_interface() -> Any:
    """Returns the class of which a `Saver` expects its session, which has no public name."""
    return tf1.Session.__mro__[-2]


def bulk_saver_builder() -> Any:
    """Returns the class that makes the operations of a `Saver`, which has no public name."""
    return importlib.import_module("tensorflow.python.training.saver").BulkSaverBuilder


def register_function(definition: Any) -> None:
    """Registers an untraced `FunctionDef` here and on all servers, unless it is there."""
    context: Any = importlib.import_module("tensorflow.python.eager.context").context()
    if not context.has_function(definition.signature.name):
        context.add_function_def(definition)


@contextlib.contextmanager
def extendable(graph: Any) -> Iterator[None]:
    """Lets a graph that a session runs take operations, also one that is final.

    A session is given what is new with its next call; supervisors make graphs final so that no
    program adds operations with each update. The method has had no public name from 1.15 to 2.21.
    """
    final = graph.finalized
    if final:
        graph._unsafe_unfinalize()
    try:
        yield
    finally:
        if final:
            graph.finalize()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppresses TensorFlow's Python log below errors, for calls with messages of no use."""
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
