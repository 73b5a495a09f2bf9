"""Random operations of a graph, each with one stream of numbers in all kinds of calls.

A function has a stream for each of its operations, so the same operation would draw the same
numbers in each kind of call. Those of the table have a twin that counts in a variable and draws
the same numbers, bit by bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compat._tensorflow import tf, tf1
from compat.runtime.graphs.nodes import is_seeded

_TWINS = {
    "RandomUniform": "StatefulUniform",
    "RandomStandardNormal": "StatefulStandardNormalV2",
    "TruncatedNormal": "StatefulTruncatedNormal",
}
_ALGORITHM = "philox_algorithm"


class Counter(NamedTuple):
    """The variable in which an operation counts what it has drawn."""

    handle: str  # The name of its tensor in the lifted part.
    seed: int
    seed2: int
    device: str  # Of the operation; "" for this process's.

    def initial(self) -> np.ndarray:
        """Returns its first value, int64 `[3]`."""
        return np.array([0, self.seed2, self.seed], np.int64)


def draws(op: Any) -> bool:
    """Whether an operation draws random numbers, by a seed or not."""
    return any(attr.name == "seed2" for attr in op.op_def.attr)


def can_be_lifted(op: Any) -> bool:
    """Whether an operation draws in a function what it draws in a session."""
    return op.type in _TWINS or not is_seeded(op.node_def)


def converted(op: Any, node: Any) -> Counter | None:
    """Makes a node that draws by a seed its twin; returns the counter, None for any other node."""
    if op.type not in _TWINS or not is_seeded(node):
        return None
    seed, seed2 = node.attr["seed"].i, node.attr["seed2"].i
    counter = Counter(f"{op.name}/counter:0", seed, seed2, node.device)
    dtype, shape_dtype = node.attr["dtype"].type, node.attr["T"].type
    shape, *controls = node.input
    node.op = _TWINS[op.type]
    node.attr.clear()
    node.attr["dtype"].type, node.attr["shape_dtype"].type = dtype, shape_dtype
    del node.input[:]
    node.input.extend([counter.handle, _ALGORITHM, shape, *controls])
    return counter


def add_algorithm(graph_def: Any) -> None:
    """Adds the constant that names the algorithm of the twins, Philox."""
    node = graph_def.node.add(name=_ALGORITHM, op="Const")
    node.attr["dtype"].type = tf.int64.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf1.make_tensor_proto(1, tf.int64))
