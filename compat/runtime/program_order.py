"""Runs the side effects of a step's function in program order, or warns of those that never run.

A graph of TensorFlow 1.x runs only the operations that a fetched value depends on. A `tf.function`
has automatic control dependencies: stateful operations run, in the order of the program.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Callable, Iterator, MutableMapping, Sequence, TypeVar

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs.nodes import dependencies

_Found = TypeVar("_Found")
_READING = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp")
_WRITING = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "Scatter")
_ACTING = (*_WRITING, "Print", "Assert")
# Operations of `SyncReplicasOptimizer`, which a queue runner or the start of a session runs.
_OF_REPLICAS, _LOCAL_STEP = "AccumulatorTakeGradient", "sync_rep_local_step"
# The operations that run in program order, by graph.
_in_order: MutableMapping[Any, set[Any]] = weakref.WeakKeyDictionary()


class Recorded:
    """The operations that a function adds to a graph."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.before = graph.get_operations()
        self.of_variables: set[Any] = set()  # Operations that create variables.

    def operations(self) -> list[Any]:
        """Returns the recorded operations, except those of initializers and queue runners."""
        keys = tf1.GraphKeys
        first: list[Any] = [*self.graph.get_collection(keys.TABLE_INITIALIZERS)]
        for runner in self.graph.get_collection(keys.QUEUE_RUNNERS):
            first += [*runner.enqueue_ops, runner.close_op, runner.cancel_op]
        apart = self.of_variables.union(dependencies([op for op in first if op is not None]))
        added = self.graph.get_operations()[len(self.before) :]
        return [op for op in added if op not in apart and op.type != "MakeIterator"]


@contextlib.contextmanager
def recorded() -> Iterator[Recorded]:
    """Records the operations that are added to the default graph."""
    graph = tf1.get_default_graph()
    recording = Recorded(graph)

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        first = len(graph.get_operations())
        try:
            return next_creator(**kwargs)
        finally:
            recording.of_variables.update(graph.get_operations()[first:])

    with tf.variable_creator_scope(create):
        yield recording


def in_program_order(function: Callable[[], _Found]) -> tuple[_Found, list[Any]]:
    """Calls a function that builds operations, and orders them as a `tf.function` would.

    Returns:
      The function's result, and the operations that have to run for its side effects, such as
      assignments, prints and assertions; see `beside` and `after`.
    """
    order = private.automatic_control_dependencies()
    private.accept_unused()  # TensorFlow would warn of unused operations, but they run.
    with recorded() as recording:
        graph = recording.graph
        shown = recording.before  # If the function fails, nothing is ordered.
        try:
            with order:
                try:
                    result = function()
                    shown = [*recording.before, *recording.operations()]
                finally:
                    graph.get_operations = lambda: shown  # TensorFlow orders only these operations.
        finally:
            del graph.get_operations
    operations = recording.operations()
    _in_order.setdefault(graph, set()).update(operations)
    effects = [op for op in graph.get_operations() if op in order.ops_which_must_run]
    _warn(
        [op.name for op in beside(operations, [result, effects]) if op.type.startswith(_ACTING)],
        "TensorFlow has no order for it in a loop of 1.x; let a value of the loop depend on it",
    )
    return result, [op for op in effects if op.type not in _READING]


def beside(effects: Sequence[Any], values: Any) -> list[Any]:
    """Returns those of the operations `effects` that no tensor in `values` depends on."""
    flat = tf.nest.flatten(values, expand_composites=True)
    needed = set(dependencies([v for v in flat if isinstance(v, tf.Operation) or _has_op(v)]))
    return [op for op in effects if op not in needed]


def _has_op(value: Any) -> bool:
    """Returns whether a value is a tensor or variable of a graph, not an eager tensor."""
    try:
        return value.op is not None
    except AttributeError:
        return False


def after(effects: Sequence[Any], values: Any) -> Any:
    """Returns the tensors of `values`, which wait for the operations `effects`, if any."""
    if not effects:
        return values
    with tf.control_dependencies(effects):
        return tf.nest.map_structure(tf.identity, values, expand_composites=True)


def warn_of_left_out(recording: Recorded, fetched: Sequence[Any]) -> None:
    """Logs a warning that names the recorded assignments that fetching `fetched` does not run."""
    # The handles of a function's variables are outside of the function.
    outside = {id(inner): outer for outer, inner in getattr(recording.graph, "captures", ())}
    keys = tf1.GraphKeys
    names = {
        id(getattr(variable, "handle", None)): variable.name.partition(":")[0]
        for key in (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES)
        for variable in tf1.get_collection(key)
    }
    metrics = [getattr(v, "handle", None) for v in tf1.get_collection(keys.METRIC_VARIABLES)]
    run = _in_order.get(recording.graph, set()).union(dependencies(fetched))
    never_run = []
    for op in recording.operations():
        if op in run or not op.type.startswith(_WRITING) or not len(op.inputs):
            continue
        target = op.inputs[0]
        if target.dtype == target.dtype.base_dtype != tf.resource:
            continue  # The operation belongs to no variable.
        handle = outside.get(id(target), target)
        name = names.get(id(handle), target.op.name)
        of_replicas = any(_OF_REPLICAS in each.type for each in dependencies([op]))
        if not of_replicas and _LOCAL_STEP not in name and not any(handle is m for m in metrics):
            never_run.append(f"{op.name} (to {name})")
    _warn(
        never_run,
        "no value that the step returns depends on it; return the operation as well, or let a "
        "value depend on it by tf.control_dependencies",
    )


def _warn(names: Sequence[str], reason: str) -> None:
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        tf1.logging.warning("never run: %s, since %s", ", ".join(names[:3]) + more, reason)
