"""Several tensors as one: a small step takes as long as its messages, and each tensor is one."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf


def packed(tensors: Sequence[Any]) -> Any:
    """Returns all elements of tensors of one type, one after another, `[elements]`."""
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)


def unpacked(flat: Any, shapes: Sequence[Any]) -> list[Any]:
    """Returns the tensors of these shapes, known in full, that `packed` has made one."""
    parts = tf.split(flat, [shape.num_elements() for shape in shapes])
    return [tf.reshape(part, shape) for part, shape in zip(parts, shapes)]
