"""Rows of large variables, read and written where these are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._tensorflow import tf
from compat.checkpoint import pieces


class Rows:
    """Rows of a variable, as a fetch of a session: they are read when their value is asked for."""

    def __init__(self, variable: Any, piece: pieces.Piece) -> None:
        self._variable, self._piece = variable, piece

    def numpy(self) -> np.ndarray:
        """Returns the values that the rows have now."""
        return np.asarray(self._variable.sparse_read(_numbers(self._variable, self._piece)).numpy())


def assign(variable: Any, value: Any) -> None:
    """Gives a variable a value; of one that is stored, some rows at a time are in memory."""
    if not isinstance(value, pieces.LargeValue):
        variable.assign(value)
        return
    for piece, rows in value.pieces():
        numbers = _numbers(variable, piece)
        variable.scatter_update(tf.IndexedSlices(tf.constant(rows), numbers))


def _numbers(variable: Any, piece: pieces.Piece) -> Any:
    with tf.device(variable.device):
        return tf.range(piece.first, piece.first + piece.number)
