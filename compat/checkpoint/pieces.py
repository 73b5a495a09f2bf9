"""Reads and writes large variables in pieces of some rows, so that they need little memory.

TensorFlow can store a variable as slices of one entry. Its readers return the whole variable, or
any slice of it.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, NamedTuple, Sequence

import numpy as np

from compat._tensorflow import tf1
from compat.checkpoint.literal_names import readable

PIECE_BYTES = 64 << 20  # Bytes that are read, sent and written at a time.
# The types of operations that read or write rows of a variable.
_BY_ROW = ("Gather", "Scatter", "SparseApply")


class Piece(NamedTuple):
    """Rows of a variable."""

    spec: str  # The `shape_and_slice` of TensorFlow's operations; empty for a whole variable.
    first: int  # Number of the first row.
    number: int  # Number of rows.
    bytes: int  # Bytes of the rows in memory.


def is_by_row(operations: Iterable[Any]) -> bool:
    """Whether one of the operations on a variable reads or writes only some of its rows."""
    return any(kind in operation.type for operation in operations for kind in _BY_ROW)


def size(shape: Sequence[int], dtype: Any) -> int:
    """Returns the bytes of an array; a string counts as the reference that NumPy stores."""
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def cut(shape: Sequence[int], dtype: Any, spec: str = "") -> list[Piece]:
    """Returns the pieces of a variable, each of one row at least.

    Args:
      shape: the shape of the variable, not scalar.
      dtype: its NumPy dtype.
      spec: the `shape_and_slice` of the variable, if it is a slice of a partitioned one.
    """
    rows, row = int(shape[0]), size(shape[1:], dtype)
    step = max(1, PIECE_BYTES // max(1, row))
    return [
        Piece(_slice(shape, first, number, spec), first, number, number * row)
        for first in range(0, rows, step)
        for number in [min(step, rows - first)]
    ]


def _slice(shape: Sequence[int], first: int, number: int, spec: str) -> str:
    """Returns the `shape_and_slice` of `number` rows from `first` on; see `cut`."""
    whole, _, slices = spec.rpartition(" ")
    whole = whole or " ".join(map(str, shape))
    offsets = [int(part.partition(",")[0]) for part in slices.split(":")] if slices else []
    offsets = offsets or [0] * len(shape)
    offsets[0] += first
    sizes = [number, *shape[1:]]
    inside = ":".join(f"{offset},{length}" for offset, length in zip(offsets, sizes))
    return f"{whole} {inside}"


def batches(sizes: Iterable[tuple[Any, int]]) -> Iterator[list[Any]]:
    """Groups objects by their sizes in bytes, in order, into lists no larger than a piece.

    An object that is larger than a piece is in a list by itself.
    """
    batch: list[Any] = []
    total = 0
    for member, length in sizes:
        if batch and total + length > PIECE_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(member)
        total += length
    if batch:
        yield batch


class LargeValue:
    """A large value that stays in its checkpoint, and is read in pieces, or whole as an array.

    Attributes:
      shape: the shape of the value.
      dtype: its NumPy dtype.
    """

    def __init__(
        self, prefix: str, name: str, dtype: Any, shape: Sequence[int], spec: str = ""
    ) -> None:
        self._prefix, self._name, self._type, self._spec = prefix, name, dtype, spec
        self.shape, self.dtype = tuple(shape), np.dtype(dtype.as_numpy_dtype)

    def part(self, spec: str, shape: Sequence[int]) -> LargeValue:
        """Returns a slice of the value, by its `shape_and_slice`; `shape` is that of the slice."""
        return LargeValue(self._prefix, self._name, self._type, shape, spec)

    def pieces(self) -> Iterator[tuple[Piece, np.ndarray]]:
        """Yields the pieces of the value, each with its rows."""
        for part in cut(self.shape, self.dtype, self._spec):
            yield part, self._read(part.spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._read(self._spec).astype(dtype or self.dtype, copy=False)

    def _read(self, spec: str) -> np.ndarray:
        # A graph and a session of its own: the same on both runtimes, and on this machine.
        with readable(self._prefix) as prefix, tf1.Graph().as_default(), tf1.device(
            "/cpu:0"
        ), tf1.Session() as session:
            read = tf1.raw_ops.RestoreV2(
                prefix=prefix,
                tensor_names=[self._name],
                shape_and_slices=[spec],
                dtypes=[self._type],
            )
            return np.asarray(session.run(read)[0])
