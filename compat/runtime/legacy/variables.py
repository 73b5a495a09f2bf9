"""What the graph says of a variable: what initialises it, and what writes to it."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf


def initial_value(variable: Any) -> Any:
    """Returns the tensor that a variable's initializer assigns, which a feed can replace."""
    return variable.initializer.inputs[1]


def assigns(tensors: Sequence[Any], variable: Any) -> bool:
    """Whether what the tensors depend on writes to a resource variable."""
    if variable is None:
        return False
    todo = [tensor if isinstance(tensor, tf.Operation) else tensor.op for tensor in tensors]
    seen = set(todo)
    while todo:
        op = todo.pop()
        if op.type.startswith("Assign") and op.inputs and op.inputs[0] is variable.handle:
            return True
        before = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
        todo += [other for other in before if other not in seen]
        seen.update(before)
    return False
