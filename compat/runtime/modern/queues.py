"""Queues of input of a v1 graph: filled and read in this process, and fed to steps.

`tf.train.string_input_producer`, `tf.train.batch` and the like make queues, which threads of a
session fill. The workers that run steps have no such threads, so each call is given what the
queues return.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import threading
import time
import uuid
from typing import Any, Iterator, Sequence

import numpy as np

from compat._tensorflow import private, tf1
from compat.errors import UserError

_QUEUES = "queues"  # A collection of each graph.
_CLOSE_SECS = 5.0


class InputQueues:
    """The part of a wrapped function that reads input, and the threads that run it.

    Attributes:
      names: the tensors that it gives to the rest of the graph.
    """

    def __init__(self, function: Any, reading: Sequence[Any], runners: Sequence[Any]) -> None:
        self.names = [tensor.name for operation in reading for tensor in operation.outputs]
        self._function, self._runners = function, runners
        self._running: collections.Counter[int] = collections.Counter()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_open = self._is_closed = False
        self._failure: Exception | None = None
        for runner in runners:  # Those that TensorFlow has not made outside of the graph.
            queue = runner.enqueue_ops[0].inputs[0].op
            if "shared_name" in queue.node_def.attr:
                private.share(queue, f"{uuid.uuid4().hex}/{queue.name}")
        self._pruned = functools.lru_cache(None)(self._prune)

    def take(self, names: Sequence[str], count: int) -> list[Any]:
        """Returns what the queues give for `count` steps, an array `[count, ...]` for each tensor.

        Raises:
          tf.errors.OutOfRangeError: the input has ended.
          UserError: the session that has read from them was closed.
        """
        if not names:
            return []
        if self._is_closed:
            raise UserError(
                "the queues of input of a step were closed with their session; read from them in "
                "one session, or give compat.step a dataset"
            )
        if not self._is_open:
            self._open()
        try:
            rows = [self._pruned(*names)() for _ in range(count)]
        except (tf1.errors.OutOfRangeError, tf1.errors.CancelledError):
            if self._failure is not None:
                raise self._failure from None
            raise
        return [np.stack([value.numpy() for value in column]) for column in zip(*rows)]

    def close(self) -> None:
        """Ends the threads, for good."""
        if self._is_open and not self._is_closed:
            self._is_closed = True
            for runner in self._runners:
                self._end(runner.cancel_op.name)
            end = time.monotonic() + _CLOSE_SECS
            for work in self._threads:  # One that runs TensorFlow as Python ends crashes both.
                work.join(max(0.0, end - time.monotonic()))

    def _prune(self, *names: str) -> Any:
        """Returns a function that computes these tensors, or runs these operations."""
        with self._lock:  # The threads would enter the graph together, which it does not take.
            return self._function.prune([], [*map(self._function.graph.as_graph_element, names)])

    def _open(self) -> None:
        self._is_open = True
        atexit.register(self.close)  # Else a thread in a full queue would keep the process.
        for number, runner in enumerate(self._runners):
            self._running[number] = len(runner.enqueue_ops)
            for operation in runner.enqueue_ops:
                work = threading.Thread(target=self._fill, args=(number, runner, operation.name))
                work.daemon = True
                self._threads.append(work)
                work.start()

    def _fill(self, number: int, runner: Any, name: str) -> None:
        """Fills a queue until its input ends, and then closes it if no other thread fills it."""
        end: str = runner.close_op.name
        try:
            enqueue = self._pruned(name)
            while not self._is_closed:
                enqueue()
        except (*runner.queue_closed_exception_types, tf1.errors.CancelledError):
            pass
        except Exception as error:
            self._failure, end = error, runner.cancel_op.name
        with self._lock:
            self._running[number] -= 1
        if not self._running[number] or self._failure is not None:
            self._end(end)

    def _end(self, name: str) -> None:
        """Closes a queue, unless the program has."""
        with contextlib.suppress(tf1.errors.CancelledError):
            self._pruned(name)()


@contextlib.contextmanager
def kept_queues() -> Iterator[None]:
    """Lets the queues that a graph makes live as long as the graph.

    While a function is traced, TensorFlow makes them outside of its graph, and deletes them with
    the Python objects, which the function that builds need not return.
    """
    begin = tf1.QueueBase.__init__

    @functools.wraps(begin)
    def kept(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        tf1.add_to_collection(_QUEUES, self)

    tf1.QueueBase.__init__ = kept
    try:
        yield
    finally:
        tf1.QueueBase.__init__ = begin


def input_queues(function: Any, outputs: Sequence[str]) -> InputQueues | None:
    """Returns the queues that outputs of a wrapped function need; None if threads fill none."""
    graph = function.graph
    runners = graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
    filled = {runner.enqueue_ops[0].inputs[0].name for runner in runners}
    reading, seen = [], set()
    waiting = [graph.get_tensor_by_name(name).op for name in outputs] if runners else []
    while waiting:
        operation = waiting.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if any(tensor.name in filled for tensor in operation.inputs):
            reading.append(operation)
        else:
            waiting += [*operation.control_inputs, *[t.op for t in operation.inputs]]
    reading.sort(key=lambda operation: str(operation.name))
    return InputQueues(function, reading, runners) if reading else None
