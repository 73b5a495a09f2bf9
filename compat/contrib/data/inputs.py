"""Inputs: `tf.contrib.data`, and the tables of `tf.contrib.lookup`."""

from __future__ import annotations

import importlib
from typing import Any, Callable

from compat._tensorflow import tf1

_lookup: Any = importlib.import_module(tf1.lookup.StaticHashTable.__module__)


def _method(name: str, **fixed: Any) -> Callable[..., Any]:
    """Returns a function that makes a transformation, which calls the method `name` of datasets."""

    def function(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        return lambda dataset: getattr(dataset, name)(*args, **fixed, **kwargs)

    function.__name__ = name
    return function


batch_and_drop_remainder = _method("batch", drop_remainder=True)
padded_batch_and_drop_remainder = _method("padded_batch", drop_remainder=True)
enumerate_dataset = _method("enumerate")


def assert_element_shape(expected_shapes: Any) -> Callable[[Any], Any]:
    """Returns a transformation that sets elements' shapes, with which the known ones must agree."""

    def set_shape(*element: Any) -> Any:
        values = element if len(element) > 1 else element[0]
        for value, shape in zip(tf1.nest.flatten(values), tf1.nest.flatten(expected_shapes)):
            value.set_shape(shape)
        return values

    return lambda dataset: dataset.map(set_shape)


def _of_mapping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function`, which creates a table, with `mapping` as the name of its vocabulary."""

    def table(mapping: Any = None, *args: Any, **kwargs: Any) -> Any:
        return function(kwargs.pop("vocabulary_list", mapping), *args, **kwargs)

    return table


index_table_from_tensor = _of_mapping(_lookup.index_table_from_tensor)
index_to_string_table_from_tensor = _of_mapping(_lookup.index_to_string_table_from_tensor)


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
    """Returns a mutable table; ignores `shared_name`."""
    kwargs.pop("shared_name", None)
    return tf1.lookup.experimental.MutableHashTable(key_dtype, value_dtype, default_value, **kwargs)
