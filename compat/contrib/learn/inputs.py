"""Inputs of `tf.contrib.learn` estimators: arrays, data frames and input functions."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from compat._tensorflow import tf1
from compat.contrib import layers
from compat.estimator import inputs
from compat.estimator.package import names as tf_estimator
from compat.runtime import interface


def _array(data: Any) -> Any:
    """Returns an array; converts floats to float32."""
    if isinstance(data, Mapping):
        return {name: _array(value) for name, value in data.items()}
    if not isinstance(data, np.ndarray):
        data = getattr(data, "values", data)  # It may be a data frame.
        data = np.asarray(data if hasattr(data, "__len__") else list(data))
    return data.astype(np.float32) if data.dtype == np.float64 else data


def input_fn_of(
    x: Any, y: Any, batch_size: int | None, train: bool
) -> Callable[[], tuple[Any, Any]]:
    """Returns an input function for arrays, or arrays by name; shuffles and repeats to train."""
    x, y = _array(x), None if y is None else _array(y)
    count = len(next(iter(x.values())) if isinstance(x, dict) else x)
    size, epochs = batch_size or count, None if train else 1
    steps = interface.has_coordinator()
    numpy_input_fn = inputs.numpy_input_fn if steps else tf_estimator.inputs.numpy_input_fn
    return numpy_input_fn(x, y, size, epochs, shuffle=train, queue_capacity=max(1000, 4 * size))


def pair(result: Any) -> tuple[Any, Any]:
    """Returns the features and the labels, or None, of an input function's result."""
    # Input functions for arrays return a dataset on the modern runtime.
    if isinstance(result, tf1.data.Dataset):
        result = tf1.data.make_one_shot_iterator(result).get_next()
    if isinstance(result, tuple) and len(result) == 2:
        return result
    return result, None


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Returns feature columns inferred from an array, arrays by name, or a data frame."""
    return _columns(_array(x))


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Returns feature columns inferred from an input function."""
    with tf1.Graph().as_default():
        return _columns(pair(input_fn())[0])


def _columns(features: Any) -> list[Any]:
    columns = []
    named = features if isinstance(features, Mapping) else {"": features}
    for name, value in sorted(named.items()):
        width = int(np.prod(tf1.TensorShape(value.shape).as_list()[1:]))
        dtype = tf1.as_dtype(value.dtype).base_dtype
        columns.append(layers.real_valued_column(name, width, dtype=dtype))
    return columns


extract_pandas_data = extract_pandas_matrix = _array


def extract_pandas_labels(labels: Any) -> Any:
    """Returns the values of a data frame with one column."""
    return _array(labels).reshape(-1)
