"""Wide & deep: a weight for each category, and a network on embeddings, added.

Source: Cheng et al., Wide & Deep Learning for Recommender Systems, 2016.
"""

from __future__ import annotations

from typing import Any, Sequence

from compat import tf
from models import embeddings
from models.perceptron import perceptron


def wide_deep(
    numbers: Any,
    rows: embeddings.Rows,
    width: int,
    hidden: Sequence[int],
    seed: int = 1,
    precision: str = "float32",
) -> Any:
    """Returns logits, float32 `[batch]`.

    Args:
      numbers: float32 `[batch, n]`, of known n.
      rows: what the batch reads of the tables.
      width: numbers in an embedding.
      hidden: units of each hidden layer.
      seed: of the initial values.
      precision: of the products of layers; see `perceptron`.
    """
    deep = rows.lookup(embeddings.table("deep", rows.total, width, seed))
    wide = rows.lookup(embeddings.table("wide", rows.total, 1, seed, limit=0.0))
    features = int(deep.shape[1])
    inputs = tf.concat([tf.reshape(deep, [-1, features * width]), numbers], axis=1)
    found = perceptron("layers", inputs, [*hidden, 1], seed, False, precision)
    linear = perceptron("numbers", numbers, [1], seed, activated=False)
    return tf.reduce_sum(wide, axis=[1, 2]) + tf.squeeze(found + linear, axis=1)
