"""`tf.estimator.inputs`: input functions of arrays and data frames."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.estimator.package import names
from compat.runtime.interface import current_runtime


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """Returns an input function of arrays; on the modern runtime it returns a `tf.data.Dataset`.

    Args:
      x: An array, or a dict of arrays, with an example per row.
      y: An array or a dict of arrays of labels, or None.
      batch_size: Examples per batch; a batch may span two epochs, and the last batch is smaller.
      num_epochs: How often the examples are repeated; None repeats them forever.
      shuffle: Whether to draw examples in random order, from a buffer of `queue_capacity`.
      queue_capacity: Number of examples in the buffer or the queue.
      num_threads: Threads that fill the queue on the legacy runtime.

    Raises:
      UserError: `shuffle` is missing, or arrays differ in length.
    """
    if not isinstance(shuffle, bool):
        raise UserError(f"shuffle={shuffle!r}; pass True to train and False to evaluate")
    if not current_runtime().has_coordinator:
        original: Callable[[], Any] = names.inputs.numpy_input_fn(
            x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads
        )
        return original
    parts = [*_arrays(x), *_arrays(y)]
    lengths = sorted({len(part) for part in parts})
    if len(lengths) != 1:
        raise UserError(
            f"the arrays of numpy_input_fn have {' and '.join(map(str, lengths)) or 'no'} rows; "
            "pass as many in each"
        )

    def input_fn() -> Any:
        dataset = tf1.data.Dataset.from_tensor_slices(x if y is None else (x, y))
        if shuffle:
            dataset = dataset.shuffle(max(1, min(lengths[0], queue_capacity)))
        return dataset.repeat(num_epochs).batch(batch_size)

    return input_fn


def _arrays(data: Any) -> list[Any]:
    if data is None:
        return []
    return [np.asarray(part) for part in (data.values() if isinstance(data, dict) else [data])]


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """Returns an input function of a data frame; its index is the feature "index".

    Args:
      x: A pandas `DataFrame`: a feature per column.
      y: A `Series` of labels, a `DataFrame` for a dict of labels, or None.
      batch_size: Number of examples in a batch; see `numpy_input_fn` for this and the next four.
      num_epochs: How often the examples are repeated.
      shuffle: Whether to draw examples in random order.
      queue_capacity: Number of examples in the buffer or the queue.
      num_threads: Threads that fill the queue on the legacy runtime.
      target_column: Name of the column of a label `Series` on the legacy runtime.

    Raises:
      UserError: As `numpy_input_fn`, or `x` and `y` have different indices.
    """
    if not current_runtime().has_coordinator:
        input_fn: Callable[[], Any] = names.inputs.pandas_input_fn(
            x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads, target_column
        )
        return input_fn
    if y is not None and not np.array_equal(x.index, y.index):
        raise UserError("x and y of pandas_input_fn have different indices; align them")
    features = {"index": x.index.values, **{name: x[name].values for name in x.columns}}
    labels = y
    if hasattr(y, "columns"):
        labels = {name: y[name].values for name in y.columns}
    elif y is not None:
        labels = y.values
    return numpy_input_fn(features, labels, batch_size, num_epochs, shuffle, queue_capacity)
