"""DLRM: embeddings and numbers meet in products of each two, and a network on those.

Source: Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation
Systems, 2019.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from compat import tf
from models import embeddings
from models.perceptron import perceptron


def dlrm(
    numbers: Any,
    rows: embeddings.Rows,
    width: int,
    hidden: Sequence[int],
    seed: int = 1,
    precision: str = "float32",
) -> Any:
    """Returns logits, float32 `[batch]`; see `wide_deep` for the arguments.

    The numbers become a vector as long as an embedding, by layers of half the hidden units.
    """
    found = rows.lookup(embeddings.table("table", rows.total, width, seed))
    dense = perceptron(
        "bottom", numbers, [*(max(1, n // 2) for n in hidden), width], seed, True, precision
    )
    vectors = tf.concat([tf.expand_dims(dense, 1), found], axis=1)
    inputs = tf.concat([dense, products(vectors)], axis=1)
    logits = perceptron("top", inputs, [*hidden, 1], seed + 1, False, precision)
    return tf.squeeze(logits, axis=1)


def products(vectors: Any) -> Any:
    """Returns the product of each two vectors.

    Args:
      vectors: float32 `[batch, n, width]`.

    Returns:
      float32 `[batch, n * (n - 1) / 2]`.
    """
    count = int(vectors.shape[1])
    all_of_them = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [-1, count * count])
    below = np.flatnonzero(np.tri(count, k=-1, dtype=bool))
    return tf.gather(all_of_them, tf.constant(below), axis=1)
