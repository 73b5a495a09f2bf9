"""Transformations of `tf.contrib.data` that are methods in `tf.data`."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1


def _method(name: str, **fixed: Any) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        return lambda dataset: getattr(dataset, name)(*args, **fixed, **kwargs)

    function.__name__ = name
    return function


batch_and_drop_remainder = _method("batch", drop_remainder=True)
padded_batch_and_drop_remainder = _method("padded_batch", drop_remainder=True)
enumerate_dataset = _method("enumerate")


def assert_element_shape(expected_shapes: Any) -> Callable[[Any], Any]:
    """Sets the shapes of a dataset's elements, which must be compatible."""

    def set_shape(*element: Any) -> Any:
        values = element if len(element) > 1 else element[0]
        for value, shape in zip(tf1.nest.flatten(values), tf1.nest.flatten(expected_shapes)):
            value.set_shape(shape)
        return values

    return lambda dataset: dataset.map(set_shape)
