"""Finds the initial values and updates of variables, and the inputs of tensors, in a graph."""

from __future__ import annotations

import functools
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, Sequence, Tuple

from compat._tensorflow import private, tf, tf1
from compat.checkpoint import pieces
from compat.runtime.graphs.nodes import called_functions, dependencies, is_input, source, writes

_UPDATES = ("Assign", "Apply", "Scatter")
_Call = Tuple[List[Any], Dict[Any, Any]]


def initial_value(variable: Any) -> Any:
    """Returns the tensor that a variable's initializer assigns, which a feed can replace."""
    return variable.initializer.inputs[1]


def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
    """Creates a variable that does not share the memory of a constant initial value.

    The graph keeps a constant, such as the initial accumulators of Adagrad. If a variable shared
    its memory, the first sparse update would copy it, and both would stay in memory.
    """
    if callable(kwargs.get("initial_value")):
        kwargs["initial_value"] = functools.partial(_unshared, kwargs["initial_value"])
    return next_creator(**kwargs)


def _unshared(initial: Callable[[], Any]) -> Any:
    value = initial()
    operation: Any = getattr(value, "op", None)
    is_constant = getattr(operation, "type", "") in ("Const", "Fill")
    if not is_constant or not value.shape.is_fully_defined():
        return value
    shape = value.shape.as_list()
    if pieces.size(shape, value.dtype.as_numpy_dtype) <= pieces.PIECE_BYTES:
        return value
    if operation.type == "Fill":
        number = operation.inputs[1]
    else:
        single = type(operation.get_attr("value"))()
        single.CopyFrom(operation.get_attr("value"))
        single.tensor_shape.Clear()
        if single.tensor_content or len(tf.make_ndarray(single).shape):
            return value  # The elements differ.
        number = tf.constant(tf.make_ndarray(single))
    return filled(shape, number)


def filled(shape: Sequence[int], number: Any) -> Any:
    """Returns a tensor filled with one number, which the graph does not keep in memory."""
    # TensorFlow folds expressions of constants and keeps the result. This zero is not constant.
    scalar = tf.constant([], tf.int32)
    zero = tf1.raw_ops.RandomUniformInt(shape=scalar, minval=0, maxval=1, seed=1, seed2=1)
    result = tf.fill(tf.constant(shape, tf.int32) + zero, number)
    result.set_shape(shape)
    return result


def assignments(variables: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[_Call]:
    """Yields the operations and the feed of calls that assign values to variables, by name.

    A finalized graph takes no new operations, so the calls run the initializers and feed their
    initial tensors. Variables that share such a tensor are in different calls.
    """
    remaining = sorted(variables)
    while remaining:
        feed: dict[str, tuple[Any, str]] = {}
        later = []
        for name in remaining:
            tensor = initial_value(variables[name])
            if feed.setdefault(tensor.name, (tensor, name))[1] != name:
                later.append(name)
        yield (
            [variables[name].initializer for _, name in feed.values()],
            {tensor: values[name] for tensor, name in feed.values()},
        )
        remaining = later


def global_step() -> Any | None:
    """Returns the default graph's global step, found by collection or by name, or None."""
    collected = tf1.get_collection(tf1.GraphKeys.GLOBAL_STEP)
    if collected:
        return collected[0]
    for variable in tf1.global_variables():
        if variable.op.name == "global_step" and variable.dtype.base_dtype.is_integer:
            return variable
    return None


def trains(fetches: Sequence[Any], variables: Sequence[Any]) -> bool:
    """Whether running `fetches` updates a variable; initializing or restoring does not count."""
    by_op = {variable.op: variable for variable in variables}
    for op in dependencies(fetches):
        if op.inputs and any(kind in op.type for kind in _UPDATES):
            variable = by_op.get(source(op.inputs[0]))
            initializes = op is getattr(variable, "initializer", None)
            if variable is not None and not initializes and not _restores(op):
                return True
        elif any(tensor.op in by_op for tensor in op.inputs) and _writes(op, by_op):
            return True
    return False


def _restores(op: Any) -> bool:
    return bool(source(op.inputs[1]).type.startswith("Restore"))


def _writes(op: Any, handles: Collection[Any]) -> bool:
    """Whether an operation calls functions, such as the branches of a `cond`, that write."""
    node = op.node_def
    if next(called_functions(node), None) is None:
        return False
    described = tf1.GraphDef(node=[node], library=private.graph_functions(op.graph))
    return writes(described, [handle.name for handle in handles])


def needs_feed(tensor: Any, fed: Collection[str]) -> bool:
    """Whether a tensor depends on a placeholder that is not fed."""
    return any(op.type == "Placeholder" for op in dependencies([tensor], fed))


def takes_input(tensor: Any) -> bool:
    """Whether computing a tensor takes an element from a queue, a reader or an iterator."""
    return any(is_input(op.type) for op in dependencies([tensor]))
