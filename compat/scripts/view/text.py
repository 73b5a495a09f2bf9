"""Decodes the strings that a Python 2 script fetches, which TensorFlow returns as bytes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from compat._tensorflow import tf1


class Text(str):
    """A string with the method `decode` of Python 2's strings."""

    __slots__ = ()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Returns the string itself."""
        return self


def install() -> None:
    """Makes the sessions of this process return strings where Python 2 returned `str`."""
    original = tf1.Session.run

    @functools.wraps(original)
    def run(self: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        return as_text(fetches, original(self, fetches, *args, **kwargs))

    tf1.Session.run = run


def as_text(fetches: Any, values: Any) -> Any:
    """Returns values with their bytes decoded, except summaries and bytes that are not UTF-8."""
    if isinstance(fetches, (list, tuple)) and isinstance(values, (list, tuple)):
        parts = [as_text(*pair) for pair in zip(fetches, values)]
        # Named tuples, such as the state of an LSTM, are made by `_make`.
        make = getattr(type(values), "_make", type(values))
        return make(parts)
    if isinstance(fetches, dict) and isinstance(values, dict):
        return {name: as_text(fetches[name], value) for name, value in values.items()}
    if "Summary" in getattr(getattr(fetches, "op", None), "type", ""):
        return values
    if isinstance(values, np.ndarray) and values.dtype == object:
        return np.array([_decoded(value) for value in values.flat], object).reshape(values.shape)
    return _decoded(values)


def _decoded(value: Any) -> Any:
    try:
        return Text(value, "utf-8") if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value
