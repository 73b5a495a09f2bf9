"""Arrays whose memory TensorFlow uses in place, without a copy, because it is aligned."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from compat._tensorflow import private, tf

_LARGEST = 64  # The alignment, in bytes, that serves every build of TensorFlow.


def rows(count: int, array: np.ndarray) -> np.ndarray:
    """Returns an empty array of `count` rows like `array`, in memory that TensorFlow can use."""
    if array.dtype.hasobject:
        return np.empty((count, *array.shape), array.dtype)
    size = count * array.nbytes
    memory = np.empty(size + _LARGEST, np.uint8)
    begin = -memory.ctypes.data % _LARGEST
    return memory[begin : begin + size].view(array.dtype).reshape(count, *array.shape)


def may_change(array: np.ndarray) -> bool:
    """Whether a tensor in the memory of an array would change when somebody writes to the array."""
    return array.__array_interface__["data"][0] % _alignment() == 0 and _is_writable(array)


@functools.lru_cache(maxsize=None)
def _alignment() -> int:
    """Returns the alignment, in bytes, of arrays that this build uses without a copy."""
    for size in (16, 32):
        array = np.zeros(256, np.uint8)
        begin = (size - array.ctypes.data) % (2 * size)
        part = array[begin : begin + 64]
        tensor = private.tensor_in_memory_of(part, tf.uint8)
        part[0] = 1
        if tensor.numpy()[0]:
            return size
    return _LARGEST


def _is_writable(array: np.ndarray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None and not owner.flags.writeable:
        owner = owner.base
    return not isinstance(owner, np.ndarray) or bool(owner.flags.writeable)
