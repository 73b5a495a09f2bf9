"""Splits a batch into parts that are computed one after the other, and averages their gradients.

So an update with many examples needs only the memory of a few.
"""

from __future__ import annotations

import functools
from typing import Any, Mapping, Sequence

from compat import tf


def batch_size(batch: Any) -> Any:
    """Returns the number of examples in a batch: the first dimension of its first non-scalar."""
    for first in tf.nest.flatten(batch, expand_composites=False):
        if isinstance(first, tf.SparseTensor):
            return first.dense_shape[0]
        if isinstance(first, tf.RaggedTensor):
            return first.nrows()
        if first.shape.rank != 0:
            return tf.shape(first, out_type=tf.int64)[0]
    return tf.constant(1, tf.int64)


def in_parts(batch: Any, number: int) -> list[tuple[Any, Any]]:
    """Returns parts of a batch, as pairs of the part's share of the examples and the part.

    Args:
      batch: tensors, also sparse and ragged ones, in any structure; each part has all scalars.
      number: the number of parts. Their sizes differ by 1 at most; if a batch of a stream has fewer
        examples than that, some parts are empty.
    """
    if number == 1:
        return [(1.0, batch)]
    size = _known_size(batch)
    bounds = [size * i // number for i in range(number + 1)]
    found = []
    for first, last in zip(bounds, bounds[1:]):
        part = tf.nest.map_structure(functools.partial(_cut, first=first, last=last), batch)
        found.append((tf.cast(last - first, tf.float32) / tf.cast(size, tf.float32), part))
    return found


def _known_size(batch: Any) -> Any:
    """Returns the number of examples: an int if the shapes in the graph have it, else a tensor."""
    for first in tf.nest.flatten(batch, expand_composites=False):
        if tf.is_tensor(first) and first.shape.rank and first.shape.as_list()[0] is not None:
            return first.shape.as_list()[0]
    return batch_size(batch)


def _cut(tensor: Any, first: Any, last: Any) -> Any:
    if isinstance(tensor, tf.SparseTensor):
        rest = tensor.dense_shape[1:]
        begin = tf.concat([[tf.cast(first, tf.int64)], tf.zeros_like(rest)], 0)
        return tf.sparse.slice(
            tensor, begin, tf.concat([[tf.cast(last - first, tf.int64)], rest], 0)
        )
    return tensor if tensor.shape.rank == 0 else tensor[first:last]


def weighted(values: Sequence[Any], shares: Sequence[Any]) -> Any:
    """Returns the sum of tensors, each times its share; with a share of 0, even NaN counts as 0."""
    parts = [tf.math.multiply_no_nan(v, tf.cast(s, v.dtype)) for v, s in zip(values, shares)]
    return tf.add_n(parts)


def mean_gradients(
    gradients: Sequence[Mapping[Any, Sequence[Any]]], shares: Sequence[Any]
) -> list[list[Any]]:
    """Returns the pairs (gradient, variable) of a batch, a list of them for each loss.

    Sparse gradients stay sparse: if several parts of the batch have read a row, it occurs several
    times.

    Args:
      gradients: for each part of the batch, the pairs by the name of the loss.
      shares: the share of the examples of each part.
    """
    if len(gradients) == 1:
        return [[*pairs] for pairs in gradients[0].values()]
    found = []
    for name in gradients[0]:
        columns = zip(*[pairs[name] for pairs in gradients])
        found.append([(_mean([g for g, _ in each], shares), each[0][1]) for each in columns])
    return found


def _mean(gradients: Sequence[Any], shares: Sequence[Any]) -> Any:
    if not all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients):
        return weighted([tf.convert_to_tensor(gradient) for gradient in gradients], shares)
    values = [weighted([g.values], [share]) for g, share in zip(gradients, shares)]
    indices = tf.concat([g.indices for g in gradients], 0)
    return tf.IndexedSlices(tf.concat(values, 0), indices, gradients[0].dense_shape)
