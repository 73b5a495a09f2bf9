"""Counts values of a feature that share a row of its embedding table because of hashing."""

from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np


class Collisions:
    """A metric: the share of the values of all features that share their row with another value.

    The row of a value is the value modulo the number of rows, as in `models.embeddings`. A value
    counts once, however often it is seen. The metric stores all different values, 8 bytes each.

    Args:
      sizes: the number of rows of each feature's table.
      ids: name of the output that has the values, int64 `[batch, features]`.
    """

    def __init__(self, sizes: Sequence[int], ids: str = "categories") -> None:
        self._sizes, self._ids = sizes, ids
        self.reset()

    def reset(self) -> None:
        """Forgets all values."""
        self._seen = [np.zeros(0, np.int64)] * len(self._sizes)

    def update(self, outputs: Mapping[str, np.ndarray]) -> None:
        """Adds the values of a chunk of examples."""
        self._seen = [np.union1d(*pair) for pair in zip(self._seen, outputs[self._ids].T)]

    def result(self) -> float:
        """Returns the share, in [0, 1]; 0 if nothing was seen."""
        alone = 0
        for seen, size in zip(self._seen, self._sizes):
            alone += int((np.bincount(seen % size) == 1).sum())
        return 1 - alone / max(1, sum(map(len, self._seen)))
