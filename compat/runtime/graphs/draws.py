"""Makes each random operation of a graph draw one stream of numbers, whichever function runs it.

TensorFlow 2 starts a stream for each function that contains an operation, so copies of the
operation in several functions would draw the same numbers. For each operation in `_TWINS`,
TensorFlow 2 has a variant that draws the same numbers as the operation, bit by bit, but counts them
in a variable, which the functions share.
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
    """The variable in which an operation counts the numbers that it has drawn."""

    handle: str  # The name of the variable's tensor in the lifted part.
    seed: int
    seed2: int
    device: str  # The device of the operation; "" for this process.

    def initial(self) -> np.ndarray:
        """Returns the initial value of the variable, int64 `[3]`."""
        return np.array([0, self.seed2, self.seed], np.int64)


def draws(op: Any) -> bool:
    """Whether an operation draws random numbers, with a seed or without."""
    return any(attr.name == "seed2" for attr in op.op_def.attr)


def can_be_lifted(op: Any) -> bool:
    """Whether functions can run a random operation: it has no seed, or a variant with a counter."""
    return op.type in _TWINS or not is_seeded(op.node_def)


def converted(op: Any, node: Any) -> Counter | None:
    """Converts a seeded random node to the variant with a counter; returns the counter, or None."""
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
    """Adds the constant that names the algorithm of the converted operations, Philox."""
    node = graph_def.node.add(name=_ALGORITHM, op="Const")
    node.attr["dtype"].type = tf.int64.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf1.make_tensor_proto(1, tf.int64))
