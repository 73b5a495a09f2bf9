"""Converts to tensors what was a list in Python 2, such as `range(10)`.

Early releases of TensorFlow did so on Python 3 as well.
"""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1

_KINDS: tuple[Any, ...] = (range, map, filter, zip, type({}.keys()), type({}.values()))


def constant(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns `tf.constant` of a value, which may be a range, map, filter or zip."""
    return tf1.constant(list(value) if isinstance(value, _KINDS) else value, *args, **kwargs)


def install() -> None:
    """Registers the conversions with TensorFlow, for every operation of this process."""

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        del as_ref
        return tf1.constant(list(value), dtype=dtype, name=name or "Const")

    for kind in _KINDS:
        tf1.register_tensor_conversion_function(kind, convert, priority=0)
