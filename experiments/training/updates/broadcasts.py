"""Finds an operation of a loss that computes with all pairs of examples by mistake.

For scores `[batch]` and labels `[batch, 1]`, `scores - labels` is `[batch, batch]`, without an
error. A model that is trained with such a loss learns nothing.
"""

from __future__ import annotations

from typing import Any, Sequence

from compat import tf1

# Operations that make a column on purpose: x[:, None], tf.expand_dims, tf.reshape.
_COLUMN = {"ExpandDims", "Reshape", "StridedSlice"}


def check(operations: Sequence[Any]) -> None:
    """Raises an `InvalidArgumentError` for the first operation that makes pairs by mistake.

    Args:
      operations: operations of a graph, in the order in which they were made.
    """
    for op in operations:
        if len(op.inputs) != 2 or len(op.outputs) != 1:
            continue
        vector, column = sorted(op.inputs, key=lambda tensor: tensor.shape.rank or 0)
        if vector.shape.rank != 1 or column.shape.rank != 2 or op.outputs[0].shape.rank != 2:
            continue
        (batch,), pairs = vector.shape.as_list(), op.outputs[0].shape.as_list()
        is_pair = column.shape.as_list() == [batch, 1] and pairs == [batch, batch] and batch != 1
        if is_pair and not _is_meant(column):
            raise tf1.errors.InvalidArgumentError(
                None,
                op,
                f"{op.type} of [batch] and [batch, 1] is [batch, batch], of each example with each "
                "other: tf.squeeze(x, 1) makes [batch] of [batch, 1]; if pairs are meant, make "
                "[1, batch] of the other by tf.expand_dims(x, 0)",
            )


def _is_meant(column: Any) -> bool:
    """Whether a column `[batch, 1]` was made on purpose, or computed from such a column."""
    shape, waiting, known = column.shape.as_list(), [column.op], {column.op}
    while waiting:
        op = waiting.pop()
        if op.type in _COLUMN or ("keep_dims" in op.node_def.attr and op.get_attr("keep_dims")):
            return True
        alike = {t.op for t in op.inputs if t.shape.rank == 2 and t.shape.as_list() == shape}
        waiting += alike - known
        known |= alike
    return False
