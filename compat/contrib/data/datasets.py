"""`tf.contrib.data.Dataset` of TensorFlow 1.2 to 1.4: `tf.data` with its earlier names."""

from __future__ import annotations

import functools
from typing import Any, Callable

from compat._tensorflow import tf1

FixedLengthRecordDataset: Any = tf1.data.FixedLengthRecordDataset
Iterator: Any = tf1.data.Iterator
TFRecordDataset: Any = tf1.data.TFRecordDataset
TextLineDataset: Any = tf1.data.TextLineDataset


class _Kind(type(tf1.data.Dataset)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, tf1.data.Dataset)


class Dataset(tf1.data.Dataset, metaclass=_Kind):
    """`tf.data.Dataset`, except that `list_files` keeps the order of the files."""

    @staticmethod
    def list_files(file_pattern: Any, **options: Any) -> Any:
        return tf1.data.Dataset.list_files(file_pattern, **{"shuffle": False, **options})


def sloppy_interleave(map_func: Any, cycle_length: int, block_length: int = 1) -> Any:
    """Returns a transformation that interleaves datasets as soon as elements are ready."""
    return tf1.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True
    )


def _buffered(mapping: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `Dataset.map`, which also accepts the arguments of `tf.contrib.data`."""

    @functools.wraps(mapping)
    def map_(
        self: Any,
        map_func: Any,
        *args: Any,
        num_threads: Any = None,
        output_buffer_size: Any = None,
        **options: Any,
    ) -> Any:
        # Today this argument is a bool: whether the order is kept.
        if len(args) > 1 and not isinstance(args[1], bool):
            args, output_buffer_size = args[:1], args[1]
        if num_threads is not None:
            options["num_parallel_calls"] = num_threads
        dataset = mapping(self, map_func, *args, **options)
        return dataset if output_buffer_size is None else dataset.prefetch(output_buffer_size)

    return map_


def _applied(name: str) -> Callable[..., Any]:
    """Returns a dataset method for `name`, which some releases have only as a function.

    The method calls `Dataset.apply`, since only the datasets that this returns have
    `make_one_shot_iterator`; other datasets of TensorFlow 2 lack it.
    """
    today = getattr(tf1.data.Dataset, name, None)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        if today is None:
            return self.apply(getattr(tf1.data.experimental, name)(*args, **options))
        return self.apply(lambda dataset: today(dataset, *args, **options))

    return method


def _install() -> None:
    """Adds the methods of `tf.contrib.data` to the datasets of `tf.data` in this process."""
    kind: Any = tf1.data.Dataset
    kind.map = _buffered(kind.map)
    for name in ("dense_to_sparse_batch", "group_by_window", "ignore_errors", "unbatch"):
        setattr(kind, name, _applied(name))


_install()
