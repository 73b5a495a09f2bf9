"""Provides operations on arrays that newer releases of NumPy refuse."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy import ndarray

from compat.scripts.reading.arrays import (
    ELEMENT,
    FORMAT,
    METHOD,
    METHODS,
    NUMBER,
    RENAMED,
    TRUTH,
    WHOLE,
)


class _Number:
    """An array with one element, which `%` formats as a number or as an array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __float__(self) -> float:
        return float(self._array.item())

    def __int__(self) -> int:
        return int(self._array.item())

    def __repr__(self) -> str:
        return repr(self._array)

    def __str__(self) -> str:
        return str(self._array)


def _is_one(value: Any) -> bool:
    return isinstance(value, ndarray) and value.size == 1 and value.ndim > 0


def classic_number(value: Any) -> Any:
    """Returns the element of an array of one element, which NumPy 2.4 does not convert."""
    return value.item() if isinstance(value, ndarray) and value.size == 1 else value


def classic_element(value: Any, owner: Any) -> Any:
    """Returns the value to assign to an element of `owner`; an array of one becomes a scalar."""
    if isinstance(owner, ndarray) and _is_one(value) and owner.dtype != object:
        return np.asarray(value).reshape(())[()]
    return value


def classic_format(text: Any, values: Any) -> Any:
    """Returns `text % values`; `%d` and the like also accept arrays of one element.

    Newer releases of NumPy do not convert these to numbers. `text` may be a number too, since `%`
    also computes a remainder.
    """
    try:
        return text % values
    except TypeError:
        wrapped = _wrapped(values)
        if wrapped is values:
            raise
    return text % wrapped


def _wrapped(values: Any) -> Any:
    if isinstance(values, tuple) and any(map(_is_one, values)):
        return tuple(_Number(value) if _is_one(value) else value for value in values)
    if isinstance(values, dict) and any(map(_is_one, values.values())):
        return {key: _Number(value) if _is_one(value) else value for key, value in values.items()}
    return _Number(values) if _is_one(values) else values


def classic_truth(value: Any) -> Any:
    """Returns a value whose truth can be tested; False for an empty array."""
    return False if isinstance(value, ndarray) and value.size == 0 else value


def classic_whole(value: Any, other: Any) -> Any:
    """Returns `value` as the left operand of `==` or `!=` with None or a string.

    Old NumPy compared an array as a whole with these; NumPy today compares each element. So for
    an array this is `Ellipsis`, which equals neither None nor any string. Only an array without
    numbers, such as one of strings, is still compared with a string by elements.
    """
    is_array = isinstance(value, ndarray)
    return ... if is_array and (other is None or value.dtype.kind in "biufc") else value


def classic_method(owner: Any, name: str) -> Any:
    """Returns a method of `owner`, including methods that NumPy 2 or Python removed."""
    if hasattr(owner, name):
        return getattr(owner, name)
    if name in _METHODS and (name not in RENAMED or isinstance(owner, (ndarray, np.generic))):
        return functools.partial(_METHODS[name], owner)
    return getattr(owner, RENAMED.get(name, name))


def _itemset(array: Any, *args: Any) -> None:
    *index, value = args
    array[np.unravel_index(index[0], array.shape) if len(index) == 1 else tuple(index)] = value


_METHODS: dict[str, Any] = {
    "getchildren": list,
    "itemset": _itemset,
    "newbyteorder": lambda array, order="S": array.view(array.dtype.newbyteorder(order)),
    "ptp": np.ptp,
    "tostring": lambda array, order="C": array.tobytes(order),
}
assert set(_METHODS) == set(METHODS)

BUILTINS: dict[str, Any] = {
    ELEMENT: classic_element,
    FORMAT: classic_format,
    METHOD: classic_method,
    NUMBER: classic_number,
    TRUTH: classic_truth,
    WHOLE: classic_whole,
}
