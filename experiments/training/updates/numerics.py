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

    An operation is at fault if it makes a NaN although its inputs have none, or an infinite value
    although its inputs are finite. The error is an `InvalidArgumentError`. TensorFlow's
    `add_check_numerics_ops` runs its checks in any order, so it may name a later operation than the
    first one; and it fails for a mask of -inf, which many losses have.

    Args:
      operations: operations of a graph, in the order in which they were made.
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
    first = tf.argmax(tf.cast(flags, tf.int32))  # The index of the first flag that is set.
    name = tf.gather(tf.constant(np.array(["", *names])), first)
    said = tf.strings.join([FIRST_FAULT + " ", name])
    return tf.debugging.Assert(tf.logical_not(tf.reduce_any(flags)), [said])


def _described(name: str) -> str:
    """Returns the name of an operation for an error; for one of a gradient, the forward operation.

    The name is in double braces, as in TensorFlow's own errors, so that `own_frames` can find the
    line of the user's program that made the operation.
    """
    found = _OF_GRADIENT.match(name)
    return f"{{{{node {found[1]}}}}}, in its gradient" if found else f"{{{{node {name}}}}}"


def _is_checked(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating and tensor.dtype == tensor.dtype.base_dtype)


def _is_not_finite(tensor: Any) -> Any:
    return tf.logical_not(tf.math.is_finite(tensor))


def _any(is_one: Any, tensors: list[Any]) -> Any:
    """Returns whether `is_one` is true for an element of any of the tensors."""
    found = [tf.reduce_any(is_one(tensor)) for tensor in tensors]
    return tf.reduce_any(tf.stack(found)) if found else tf.constant(False)
