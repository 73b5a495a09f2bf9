"""Embeddings of many features: one variable for all tables of a width, each row sent once.

    rows = embeddings.Rows(batch["categories"], sizes=[10000] * 26)       # int64 [batch, 26]
    table = embeddings.table("table", rows.total, width=64, seed=1)
    found = rows.lookup(table)                                            # float32 [batch, 26, 64]

A lookup is one gather, and its update one scatter, on each parameter server, whatever the number of
features. Both carry the different rows of the batch only, however large the table.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from compat import tf, tf1
from compat.runtime.interface import current_server


class Rows:
    """The rows of a table that a batch reads; several tables may be looked up by them.

    The table of feature i has `sizes[i]` rows, and a value has the row of its remainder. Rows of
    all features are spread over the whole variable, so that each of its parts has a share of every
    feature's, and of its traffic.

    Args:
      ids: int64 `[batch, features]`, at least 0: hashes, or numbers below the sizes.
      sizes: number of rows of each feature.

    Attributes:
      total: number of rows of all features.
      unique: int64 `[n]`, the rows of the batch, each once.
    """

    def __init__(self, ids: Any, sizes: Sequence[int]) -> None:
        self.total = int(sum(sizes))
        offsets = np.cumsum(sizes) - np.asarray(sizes)
        rows = tf.math.floormod(ids, tf.constant(sizes, tf.int64)) + tf.constant(offsets, tf.int64)
        spread = tf.math.floormod(rows * _stride(self.total), self.total)
        self._find(tf.reshape(spread, [-1]), len(sizes))

    def _find(self, rows: Any, features: int) -> None:
        """Takes the rows of the batch's values, int64 `[batch * features]`."""
        self.unique, self._positions = tf.unique(rows)
        self._features = features

    def lookup(self, table: Any) -> Any:
        """Returns the embeddings, float32 `[batch, features, width]`, from what `table` made."""
        found = tf1.nn.embedding_lookup(table, self.unique, partition_strategy="div")
        width = int(found.shape[-1])
        return tf.reshape(_each(found, self._positions), [-1, self._features, width])


def table(
    name: str,
    rows: int,
    width: int,
    seed: int = 1,
    limit: float | None = None,
    parts: int | None = None,
    dtype: Any = None,
) -> Any:
    """Returns a variable `[rows, width]`, in as many parts as there are parameter servers.

    A checkpoint holds it whole, so a run with any other number of servers can resume from it.

    Args:
      name: of the variable.
      rows: number of its rows.
      width: numbers in a row.
      seed: of the initial values.
      limit: they are uniform in [-limit, limit]; None: 1 / sqrt(width).
      parts: another number of parts.
      dtype: of the numbers; None: float32. Whole ones begin as zeros, and are not trained.
    """
    kind = dtype or tf.float32
    bound = 1 / math.sqrt(width) if limit is None else limit

    def initial(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        first = partition_info.var_offset[0] if partition_info else 0
        if not bound or not kind.is_floating:
            return tf.zeros(shape, dtype)
        return tf.random.stateless_uniform(shape, [seed, first], -bound, bound, dtype)

    server = current_server()
    servers = 1
    if server is not None and "ps" in server.cluster.jobs:
        servers = len(server.cluster.task_indices("ps"))
    split = tf1.fixed_size_partitioner(min(parts or servers, rows))
    return tf1.get_variable(
        *(name, [rows, width], kind, initial), trainable=kind.is_floating, partitioner=split
    )


def _each(found: Any, positions: Any) -> Any:
    """Returns `found[positions]`, whose gradient is the sum of those of each row: a tensor."""

    @tf.custom_gradient
    def gather(found: Any) -> Any:
        def gradient(change: Any) -> Any:
            return tf.math.unsorted_segment_sum(change, positions, tf.shape(found)[0])

        return tf.gather(found, positions), gradient

    return gather(found)


def _stride(total: int) -> int:
    """Returns a number without a common factor with `total`, near its golden section."""
    stride = max(1, round(total * 0.618))
    while math.gcd(stride, total) != 1:
        stride += 1
    return stride
