"""What was a list in Python 2, and is taken as one where a tensor is made of it.

TensorFlow of the time took `range(10)` in Python 3, too.
"""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1

_KINDS: tuple[Any, ...] = (range, map, filter, zip, type({}.keys()), type({}.values()))


def constant(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Makes a constant."""
    return tf1.constant(list(value) if isinstance(value, _KINDS) else value, *args, **kwargs)


def install() -> None:
    """Has every operation of this process take them."""

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        del as_ref
        return tf1.constant(list(value), dtype=dtype, name=name or "Const")

    for kind in _KINDS:
        tf1.register_tensor_conversion_function(kind, convert, priority=0)
