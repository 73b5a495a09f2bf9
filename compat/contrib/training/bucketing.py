"""`tf.contrib.training.bucket` and `bucket_by_sequence_length`: batches of similar examples."""

from __future__ import annotations

import importlib
from typing import Any, Sequence

from compat._tensorflow import tf1

_queues: Any = importlib.import_module("tensorflow.python.training.input")


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Collects examples in one queue per bucket, and makes batches of the examples of a bucket.

    Args:
      tensors: The tensors of one example, a list or a dict.
      which_bucket: The bucket of the example, from 0.
      batch_size: The size of all batches, or a list with the size for each bucket.
      num_buckets: The number of buckets.
      num_threads: The number of threads that read examples.
      capacity: The size of the queue of batches, and of buckets, in elements.
      bucket_capacities: The size of each bucket, instead of `capacity`.
      shapes: The shapes of the tensors; by default their static shapes.
      dynamic_pad: Whether to pad the tensors of a batch to one shape.
      allow_smaller_final_batch: Whether to return incomplete batches when the input ends.
      keep_input: Examples for which this is false are dropped.
      shared_name: A name by which sessions share the queues.
      name: Name of the operations.

    Returns:
      The bucket of a batch, int32; and its tensors, in the structure of `tensors`.

    Raises:
      ValueError: If a list does not have an entry for each bucket, or a shape is unknown.
    """
    is_list = isinstance(batch_size, (list, tuple))
    sizes = list(batch_size) if is_list else [batch_size] * num_buckets
    capacities = bucket_capacities or [capacity] * num_buckets
    for what, option in (("batch_size", sizes), ("bucket_capacities", capacities)):
        if len(option) != num_buckets:
            raise ValueError(
                f"{what} has {len(option)} elements, expected num_buckets={num_buckets}"
            )
    example = _queues._validate(_queues._as_tensor_list(tensors))
    with tf1.name_scope(name, "bucket", example):
        keep = _queues._validate_keep_input(keep_input, enqueue_many=False)
        example, sparse = _queues._store_sparse_tensors(example, False, keep)
        types = _queues._dtypes([example])
        shapes = _queues._shapes([example], shapes, enqueue_many=False)
        which_bucket = tf1.cast(which_bucket, tf1.int32)
        kind = tf1.PaddingFIFOQueue if dynamic_pad else tf1.FIFOQueue
        queues = [
            kind(size, types, shapes, shared_name=shared_name and f"{shared_name}_{i}")
            for i, size in enumerate(capacities)
        ]
        size = None
        if not (is_list or allow_smaller_final_batch):
            size = tf1.get_static_value(tf1.convert_to_tensor(batch_size))
        batches = tf1.PaddingFIFOQueue(
            capacity,
            [tf1.int32, *types],
            [[], *[tf1.TensorShape([size]).concatenate(shape) for shape in queues[0].shapes]],
            shared_name=shared_name,
            name="top_queue",
        )

        def enqueue() -> Any:
            return tf1.group(
                *[
                    tf1.cond(
                        tf1.equal(which_bucket, i), lambda q=queue: q.enqueue(example), tf1.no_op
                    )
                    for i, queue in enumerate(queues)
                ]
            )

        read = enqueue() if keep_input is True else tf1.cond(keep, enqueue, tf1.no_op)
        method = "dequeue_up_to" if allow_smaller_final_batch else "dequeue_many"
        enqueues = [
            batches.enqueue([tf1.constant(i), *tf1.nest.flatten(getattr(queue, method)(size))])
            for i, (queue, size) in enumerate(zip(queues, sizes))
        ]
        _run(queues[0], enqueues, [batches])
        _run(batches, [read] * num_threads, queues)
        fullness = tf1.cast(batches.size(), tf1.float32) * (1.0 / capacity)
        tf1.summary.scalar(f"bucket/{batches.name}/fraction_of_{capacity}_full", fullness)
        which, *values = batches.dequeue(name="dequeue_top")
        results = values[0] if len(values) == 1 else values
        results = _queues._restore_sparse_tensors(results, sparse)
        return which, _queues._as_original_type(tensors, results)


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Makes batches of examples of similar length; the other arguments are those of `bucket`.

    `input_length` is the length of an example. Each of the increasing `bucket_boundaries` is the
    smallest length in its bucket; a further bucket holds shorter examples.

    Returns:
      The lengths of a batch, int32 `[batch]`, and its tensors.

    Raises:
      TypeError: If the boundaries are not a list of integers.
      ValueError: If the boundaries are empty, or do not increase.
    """
    bounds = bucket_boundaries
    if not isinstance(bounds, (list, tuple)) or not all(isinstance(each, int) for each in bounds):
        raise TypeError(f"bucket_boundaries={bounds} is not a list of integers")
    if not bounds or any(low >= high for low, high in zip(bounds, bounds[1:])):
        raise ValueError(f"bucket_boundaries={bounds} does not increase, or is empty")
    example = _queues._as_tensor_list(tensors)
    with tf1.name_scope(name, "bucket_by_sequence_length", [input_length, *example]):
        length = tf1.cast(input_length, tf1.int32)
        which = tf1.reduce_sum(tf1.cast(tf1.less_equal(list(bounds), length), tf1.int32))
        _, batch = bucket(
            [length, *example],
            which,
            batch_size,
            len(bounds) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [tf1.TensorShape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        return batch[0], _queues._as_original_type(tensors, batch[1:])


def _run(queue: Any, operations: Sequence[Any], closed: Sequence[Any]) -> None:
    """Adds a queue runner, which closes queues when their input has ended."""
    runner = tf1.train.QueueRunner(
        queue,
        list(operations),
        tf1.group(*[each.close() for each in closed]),
        tf1.group(*[each.close(cancel_pending_enqueues=True) for each in closed]),
        (tf1.errors.OutOfRangeError, tf1.errors.CancelledError),
    )
    tf1.train.add_queue_runner(runner)
