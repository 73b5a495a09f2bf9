"""The tables of `tf.contrib.lookup`, which accept the vocabulary as `mapping`."""

from __future__ import annotations

import importlib
from typing import Any, Callable

from compat._tensorflow import tf1

_ops: Any = importlib.import_module(tf1.lookup.StaticHashTable.__module__)


def _of_mapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def table(mapping: Any = None, *args: Any, **kwargs: Any) -> Any:
        return function(kwargs.pop("vocabulary_list", mapping), *args, **kwargs)

    return table


index_table_from_tensor = _of_mapping(_ops.index_table_from_tensor)
index_to_string_table_from_tensor = _of_mapping(_ops.index_to_string_table_from_tensor)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: Any = None) -> Any:
    """Returns the indices of strings."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: Any = None) -> Any:
    """Returns the strings of indices."""
    table = index_to_string_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)


def MutableHashTable(
    key_dtype: Any, value_dtype: Any, default_value: Any, *args: Any, **kwargs: Any
) -> Any:
    """Returns a mutable table; accepts `shared_name` and ignores it."""
    kwargs.pop("shared_name", None)
    return tf1.lookup.experimental.MutableHashTable(key_dtype, value_dtype, default_value, **kwargs)
