"""Finds the operation that makes the first NaN or infinite value of an update."""

from __future__ import annotations

import re
from typing import Any, Sequence

import numpy as np

from compat import tf
from compat._tensorflow import private
from experiments.launching.own_frames import FIRST_FAULT

_OF_GRADIENT = re.compile(r"(?:.*/)?gradients(?:_\d+)?/(.+?)_grad(?:_\d+)?/")


def check(operations: Sequence[Any]) -> Any:
    """Returns an operation that fails with the name of the first operation at fault, if any.

    That is one that makes NaN of numbers, or an infinite value of finite ones. TensorFlow's
    `add_check_numerics_ops` checks operations side by side, so it may name any of those behind the
    first one; and it takes a mask of -inf, which many losses have, for a fault. The error is an
    `InvalidArgumentError`.

    Args:
      operations: of a graph, in the order in which they were made.
    """
    at_fault: list[Any] = []
    names: list[str] = []
    for op in operations:
        outputs = [tensor for tensor in op.outputs if _is_checked(tensor)]
        if op.type == "Const" or not outputs or private.is_in_branch_or_loop(op):
            continue
        inputs = [tensor for tensor in op.inputs if _is_checked(tensor)]
        makes_nan = tf.logical_and(_any(tf.math.is_nan, outputs), ~_any(tf.math.is_nan, inputs))
        makes_inf = tf.logical_and(_any(_is_not_finite, outputs), ~_any(_is_not_finite, inputs))
        at_fault.append(tf.logical_or(makes_nan, makes_inf))
        names.append(_described(op.name))
    flags = tf.stack([tf.constant(False), *at_fault])
    first = tf.argmax(tf.cast(flags, tf.int32))  # The first of the largest.
    name = tf.gather(tf.constant(np.array(["", *names])), first)
    said = tf.strings.join([FIRST_FAULT + " ", name])
    return tf.debugging.Assert(tf.logical_not(tf.reduce_any(flags)), [said])


def _described(name: str) -> str:
    """Returns what an error says of an operation; of a gradient's, the operation that it is of."""
    found = _OF_GRADIENT.match(name)
    return f"{{{{node {found[1]}}}}}, in its gradient" if found else f"{{{{node {name}}}}}"


def _is_checked(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating and tensor.dtype == tensor.dtype.base_dtype)


def _is_not_finite(tensor: Any) -> Any:
    return tf.logical_not(tf.math.is_finite(tensor))


def _any(is_one: Any, tensors: list[Any]) -> Any:
    """Returns whether an element of one of the tensors is one of these."""
    found = [tf.reduce_any(is_one(tensor)) for tensor in tensors]
    return tf.reduce_any(tf.stack(found)) if found else tf.constant(False)
