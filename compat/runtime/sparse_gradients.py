"""Gradients of some rows of a variable, `tf.IndexedSlices`, as lookups of embeddings have them."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf


def distinct_rows(gradient: Any) -> Any:
    """Returns a sparse gradient with the sum of each row once, in their order; a tensor as it is.

    `SparseConditionalAccumulator` expects such. Of others it may add the gradients of a row where
    it should average them, depending on which of them arrives first.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    order = tf.argsort(rows)
    return tf.IndexedSlices(tf.gather(sums, order), tf.gather(rows, order), gradient.dense_shape)
