"""Accumulates the gradients of several calls of a step on parameter servers.

A session runs the last of these calls after the others have finished, and that call applies the
mean of all gradients. So the calls together make one synchronous update, as the replicas of
`SyncReplicasOptimizer` do.
"""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple, Sequence

from compat._tensorflow import tf, tf1
from compat.runtime.graphs.packing import distinct_rows

_ACCUMULATION = "compat_gradient_accumulation"
_NEVER_STALE = 2**62  # As a gradient's step; accumulators drop gradients of old steps.


class Accumulation(NamedTuple):
    """How a step accumulates the gradients of an optimizer."""

    calls: int  # Calls of the step that make one update.
    is_last: Any  # A bool tensor of the graph, true in the call that makes the update.


def accumulations(graph: Any) -> list[Accumulation]:
    """Returns the accumulation of each optimizer of a graph that accumulates gradients."""
    return list(graph.get_collection(_ACCUMULATION))


def apply_mean(optimizer: Any, calls: int, gradients: Sequence[Any], *args: Any) -> Any:
    """Returns the operation by which every `calls` calls apply the mean of their gradients.

    The mean of a row of a sparse gradient is over the calls whose gradient has the row, as in
    `SyncReplicasOptimizer`. `args` are the arguments of `apply_gradients` after the gradients.
    """
    pairs = [(gradient, variable) for gradient, variable in gradients if gradient is not None]
    if calls == 1:
        return optimizer.apply_gradients(pairs, *args)
    flag = tf1.placeholder_with_default(False, [])
    tf1.add_to_collection(_ACCUMULATION, Accumulation(calls, flag))
    accumulators, additions = [], []
    shared = f"gradients/{uuid.uuid4().hex}"  # All steps that are selected from this one use it.
    for number, (gradient, variable) in enumerate(pairs):
        kind = _Sparse if isinstance(gradient, tf.IndexedSlices) else _Dense
        accumulators.append(kind(variable, gradient.dtype, f"{shared}/{number}"))
        additions.append(accumulators[-1].add(gradient))

    def update() -> Any:
        means = [(each.take(), variable) for each, (_, variable) in zip(accumulators, pairs)]
        with tf.control_dependencies([optimizer.apply_gradients(means, *args)]):
            return tf.constant(True)

    with tf.control_dependencies(additions):
        is_last = tf.identity(flag)
    return tf.group(tf.cond(is_last, update, lambda: tf.constant(False)))


class _Dense:
    """Accumulates gradients that are tensors.

    `take` returns the mean of however many gradients there are. If a call is repeated because its
    worker was lost, the first attempt may have added its gradient, or removed those of other calls.
    """

    def __init__(self, variable: Any, dtype: Any, shared: str) -> None:
        self._device = variable.device
        with tf.device(self._device):
            self._sum = tf1.ConditionalAccumulator(dtype, variable.shape, shared)

    def add(self, gradient: Any) -> Any:
        """Returns the operation that adds a gradient."""
        with tf.device(self._device):
            return self._sum.apply_grad(gradient, _NEVER_STALE)

    def take(self) -> Any:
        """Returns the mean of all gradients, which are removed."""
        with tf.device(self._device):
            return self._sum.take_grad(1)


class _Sparse:
    """Accumulates sparse gradients in a queue, since functions cannot use TensorFlow's accumulator.

    The queue pads shorter gradients with row 0, so row 0 of the variable is stored as row 1.
    """

    def __init__(self, variable: Any, dtype: Any, shared: str) -> None:
        self._variable = variable
        shapes = [[None], [None, *variable.shape[1:].as_list()]]
        with tf.device(variable.device):
            self._queue = tf1.PaddingFIFOQueue(-1, [tf.int64, dtype], shapes, shared_name=shared)

    def add(self, gradient: Any) -> Any:
        """Returns the operation that adds a gradient."""
        each = distinct_rows(gradient)
        values = tf.reshape(each.values, [-1, *self._variable.shape[1:].as_list()])
        with tf.device(self._variable.device):
            return self._queue.enqueue([tf.cast(each.indices, tf.int64) + 1, values])

    def take(self) -> Any:
        """Returns the mean of all gradients, which are removed."""
        with tf.device(self._variable.device):
            numbers, values = self._queue.dequeue_many(self._queue.size())
            present = numbers > 0
            rows, places, counts = tf.unique_with_counts(tf.boolean_mask(numbers, present) - 1)
            sums = tf.math.unsorted_segment_sum(
                tf.boolean_mask(values, present), places, tf.size(rows)
            )
            counts = tf.reshape(tf.cast(counts, sums.dtype), [-1, *[1] * (sums.shape.rank - 1)])
            return tf.IndexedSlices(sums / counts, rows, tf.shape(self._variable))
