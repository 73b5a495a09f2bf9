"""Restores behavior of TensorFlow until 1.15 for the construction of graphs and the end of queues.

A float without a fraction can be a dimension, as in `[None, size / 2]`. An object that was a list
in Python 2, such as `range(10)`, is converted to a tensor. The second half of a random operation's
seed is its number in the graph, as until 1.15; since 2.0 it is the number of random operations
before it. A loop that starts its queue runners again after the end of their input is stopped, since
TensorFlow would repeat it forever.
"""

from __future__ import annotations

import functools
import logging
import weakref
from typing import Any

from compat._tensorflow import embeddings, private, rounding, saving, tf, tf1

_LISTS: tuple[Any, ...] = (range, map, filter, zip, type({}.keys()), type({}.values()))


def constant(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns `tf.constant` of a value, which may be a range, map, filter or zip."""
    return tf1.constant(list(value) if isinstance(value, _LISTS) else value, *args, **kwargs)


def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """Returns the value of `tf.train.match_filenames_once`, for `string_input_producer`.

    `string_input_producer` tests the truth of its argument, which resource variables refuse.
    """
    return tf.convert_to_tensor(tf1.train.match_filenames_once(pattern, name))


# Operators that TensorFlow 2's variables refuse; in a script, `variable -= value` is a tensor.
_IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__")

_ended: Any = weakref.WeakSet()  # The sessions in which a call has reached the end of its input.


def _notes_the_end(run: Any) -> Any:
    """Returns a `Session.run` that adds a session to `_ended` at the end of its input."""

    @functools.wraps(run)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(self, *args, **kwargs)
        except tf1.errors.OutOfRangeError:
            _ended.add(self)
            raise

    return noted


def _until_the_input_ends(create: Any) -> Any:
    """Returns a `create_threads` that starts once per session and ends with its input.

    A queue is closed when its threads have ended. Threads that start later, as in `while not
    sv.should_stop(): start_queue_runners(...)`, add nothing to it, so each further step would fail.
    Therefore the first coordinator, often that of a Supervisor, is asked to stop once a step has
    failed at the end of the input. An earlier request would close all queues too soon.
    """
    coordinators: Any = weakref.WeakKeyDictionary()  # Coordinators by queue runner and by session.

    @functools.wraps(create)
    def created(
        self: Any, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> Any:
        by_session = coordinators.setdefault(self, weakref.WeakKeyDictionary())
        first = by_session.get(sess)
        if first is None or first.should_stop():
            threads = create(self, sess, coord, daemon, start)
            if threads and coord is not None:
                by_session[sess] = coord
            return threads
        # While the queue is still being filled, `create` makes no threads.
        if sess in _ended and create(self, sess, None, daemon, False):
            logging.getLogger(__name__).warning(
                "the input of the queue %s has ended, so training stops", self.name
            )
            first.request_stop()
        return []

    return created


def _on_cpu(make: Any) -> Any:
    """Returns a method that places a reader on the CPU, also in `tf.device("/gpu:0")`.

    Until 1.15, soft placement moves a queue and its reader to the CPU. Since 2.0 `FIFOQueue` names
    the CPU itself, and operations that are colocated with it cannot be moved there from another
    device.
    """

    @functools.wraps(make)
    def read(*args: Any, **kwargs: Any) -> Any:
        if not _queues_name_the_cpu():
            return make(*args, **kwargs)
        with tf1.device("CPU"):  # TensorFlow does the same for queues: `/gpu:1` becomes `/cpu:1`.
            return make(*args, **kwargs)

    return read


@functools.lru_cache(maxsize=None)
def _queues_name_the_cpu() -> bool:
    with tf1.Graph().as_default(), tf1.device("/gpu:0"):
        return "CPU" in tf1.FIFOQueue(1, tf1.int32).queue_ref.device


def install() -> None:
    """Patches TensorFlow in this process."""
    embeddings.gather_rows()
    rounding.keep_order()
    saving.read_steps_when_due()
    for name in _IN_PLACE:
        setattr(private.resource_variable(), name, lambda self, value: NotImplemented)
    shapes, seeds = private.shapes_and_seeds()
    dimension, seed_of = shapes.Dimension.__init__, seeds.get_seed

    @functools.wraps(dimension)
    def create(self: Any, value: Any) -> None:
        is_whole = isinstance(value, float) and value.is_integer()
        dimension(self, int(value) if is_whole else value)

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        del as_ref
        return tf1.constant(list(value), dtype=dtype, name=name or "Const")

    def get_seed(op_seed: int | None) -> Any:
        graph = tf1.get_default_graph()
        if op_seed is None and graph.seed is not None:
            op_seed = graph.version  # The number of operations in the graph.
        return seed_of(op_seed)

    shapes.Dimension.__init__, seeds.get_seed = create, get_seed
    tf1.Session.run = _notes_the_end(tf1.Session.run)
    runner = tf1.train.QueueRunner
    runner.create_threads = _until_the_input_ends(runner.create_threads)
    reader = tf1.ReaderBase
    reader.read, reader.read_up_to = map(_on_cpu, (reader.read, reader.read_up_to))
    for kind in reader.__subclasses__():
        kind.__init__ = _on_cpu(kind.__init__)
    for kind in _LISTS:
        tf1.register_tensor_conversion_function(kind, convert, priority=0)
