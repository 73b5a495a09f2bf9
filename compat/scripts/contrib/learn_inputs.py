"""What estimators of `tf.contrib.learn` read: arrays, frames, and functions that make tensors."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from compat._tensorflow import tf1
from compat.scripts.contrib import feature_columns
from compat.scripts.contrib.learn_run import estimators


def _array(values: Any) -> Any:
    """Returns an array, of 32 bits where the numbers are fractions."""
    if isinstance(values, Mapping):
        return {name: _array(value) for name, value in values.items()}
    if not isinstance(values, np.ndarray):
        values = getattr(values, "values", values)  # Of a frame.
        values = np.asarray(values if hasattr(values, "__len__") else list(values))
    return values.astype(np.float32) if values.dtype == np.float64 else values


def input_fn_of(
    x: Any, y: Any, batch_size: int | None, train: bool
) -> Callable[[], tuple[Any, Any]]:
    """Returns a function that makes features and labels of arrays.

    Args:
      x: `[examples, ...]`, or such by name.
      y: `[examples]`, or None.
      batch_size: None for all at once.
      train: whether to shuffle, and to begin anew at the end.
    """
    x, y = _array(x), None if y is None else _array(y)
    count = len(next(iter(x.values())) if isinstance(x, dict) else x)
    size = batch_size or count
    return estimators().inputs.numpy_input_fn(
        x,
        y,
        batch_size=size,
        num_epochs=None if train else 1,
        shuffle=train,
        queue_capacity=max(1000, 4 * size),
    )


def pair(made: Any) -> tuple[Any, Any]:
    """Returns the features and the labels, or None, that an input function has made."""
    if isinstance(made, tuple) and len(made) == 2:
        return made
    return made, None


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Returns the columns of an array, of arrays by name, or of a frame: one of all numbers."""
    x = _array(x)
    named = x if isinstance(x, dict) else {"": x}
    return _columns({name: (value.shape, value.dtype) for name, value in named.items()})


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Returns the columns of what a function makes."""
    with tf1.Graph().as_default():
        features, _ = pair(input_fn())
        named = features if isinstance(features, Mapping) else {"": features}
        return _columns(
            {
                name: (value.shape.as_list(), value.dtype.as_numpy_dtype)
                for name, value in named.items()
            }
        )


def _columns(inputs: Mapping[str, tuple[Any, Any]]) -> list[Any]:
    columns = []
    for name in sorted(inputs):
        shape, dtype = inputs[name]
        width = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        columns.append(
            feature_columns.real_valued_column(name, dimension=width, dtype=tf1.as_dtype(dtype))
        )
    return columns


def extract_pandas_data(data: Any) -> Any:
    """Returns a frame's numbers."""
    return _array(data)


extract_pandas_matrix = extract_pandas_data


def extract_pandas_labels(labels: Any) -> Any:
    """Returns the numbers of a frame of one column."""
    return _array(labels).reshape(-1)
