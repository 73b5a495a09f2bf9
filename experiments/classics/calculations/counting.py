"""A counter and a queue on a parameter server, which all workers share.

Each increment is one operation that holds the variable's lock and returns the value, so that no two
workers get the same number. `assign_add` would not do: a second operation would read the value, and
another worker may have added to it before.
"""

from __future__ import annotations

import collections
import functools
import time
from concurrent import futures
from typing import Any, Callable, ContextManager

import numpy as np

import compat
from compat import tf, tf1
from compat.cluster.liveness import diagnosis
from compat.cluster.liveness.watchdog import connected, run_with_watchdog, submit
from compat.cluster.spec import Task
from compat.errors import PeerError, UserError
from compat.runtime.graphs.session import eagerly
from compat.runtime.interface import current_runtime

_DEVICE = "/job:ps/task:0"
_LOST = "its state is lost; stop all tasks and start them again"
_POLL_SECS = 0.1
_SAY_SECS = 5.0


class Counting:
    """A task of the cluster, which logs the numbers that it enqueues.

    Args:
      server: the server of this task, in a cluster with at least one parameter server and a worker.
      increments: the number of increments of each worker.
    """

    def __init__(self, server: compat.Server, increments: int) -> None:
        self._server, self._cluster, self._task = server, server.cluster, server.task
        self._timeout = server.rendezvous_timeout
        self._increments = increments
        self._total = server.num_workers * increments

    def run(self) -> None:
        """Runs the task until it has finished."""
        coordinates = self._server.has_coordinator
        try:
            if not coordinates and self._task == Task("ps", 0):
                self._hold()
            elif self._server.serves:
                self._server.join()
            elif coordinates:
                self._coordinate()
            else:
                self._count()
        except tf1.errors.InvalidArgumentError as error:
            if "capacity" not in str(error):
                raise
            raise UserError(
                f"--increments={self._increments} is not what other tasks were given; "
                "start all with the same number"
            ) from error
        except Exception as error:
            lost = diagnosis.peer_error(error, self._cluster, _LOST)
            if lost is None:
                raise
            raise lost from error

    def _hold(self) -> None:
        """Holds the variable and the queue until all workers have finished; logs the queue."""
        with tf1.Graph().as_default() as graph:
            with tf.device(_DEVICE):
                variable, queue = _variable(), _queue(self._total)
            with self._session(graph) as session:
                session.run(queue.size())  # Creates the queue before workers can see the variable.
                session.run(variable.initializer)
                self._server.join()
                size = session.run(queue.size())
                self._show(zip(*session.run(queue.dequeue_many(size))) if size else [])

    def _count(self) -> None:
        """Increments the counter and enqueues its values.

        The chief exits last, since its exit ends the run.
        """
        with tf1.Graph().as_default() as graph:
            with tf.device(_DEVICE):
                variable, queue = _variable(), _queue(self._total)
                ready = tf1.is_variable_initialized(variable)
                number = _increment(variable.handle, self._total)
                enqueue = queue.enqueue([number, self._task.index])
                size = queue.size()
            self._server.wait_for_peers(everybody=False)
            with self._session(graph) as session:
                self._wait(lambda: self._call(session, ready), True, "the variable to be set")
                for _ in range(self._increments):
                    found, _ = self._call(session, [number, enqueue])
                    print(f"worker {self._task.index} enqueued {found}")
                if self._server.is_chief:
                    what = f"the queue to hold {self._total} numbers"
                    self._wait(lambda: self._call(session, size), self._total, what)
        self._server.announce_end()

    def _coordinate(self) -> None:
        """Lets all workers increment the counter and enqueue its values; logs the queue."""
        runtime = current_runtime()
        runtime.meet()
        strategy = runtime.coordinator.strategy
        with eagerly():
            self._hand_out(strategy)

    def _hand_out(self, strategy: Any) -> None:
        with strategy.scope():
            variable = tf.Variable(np.int64(0), name="var")
        with tf.device(_DEVICE):
            queue = _queue(self._total)

        def count(worker: Any) -> Any:
            with tf.device(_DEVICE):
                number = _increment(variable.handle, self._total)
                with tf.control_dependencies([queue.enqueue([number, worker])]):
                    return tf.identity(number)

        count_once = tf.function(count, autograph=False)

        def work(worker: int) -> None:
            for _ in range(self._increments):
                with eagerly(), tf.device(Task("worker", worker).name):
                    number = count_once(tf.constant(worker, tf.int64))
                numbers.append((number.numpy(), worker))

        numbers: list[tuple[int, int]] = []
        told = 0
        workers = self._cluster.task_indices("worker")
        at_work = [submit(functools.partial(work, worker)) for worker in workers]

        def progress() -> int:
            nonlocal told
            for ended in filter(futures.Future.done, at_work):
                ended.result()  # Raises the exception of the thread.
            for number, worker in numbers[told:]:
                print(f"worker {worker} enqueued {number}")
                told += 1
            return told

        self._wait(progress, self._total, f"{self._total} numbers of the workers")

        def take() -> Any:
            with eagerly():
                return [tensor.numpy() for tensor in queue.dequeue_many(self._total)]

        self._show(zip(*run_with_watchdog(take, self._patience())))
        self._server.announce_end()

    def _session(self, graph: Any) -> ContextManager[Any]:
        # The filters keep the session from waiting for workers that are not running.
        config = tf1.ConfigProto(device_filters=["/job:ps", self._task.name])
        return connected(self._server.target, graph, config)

    def _call(self, session: Any, fetches: Any) -> Any:
        return run_with_watchdog(lambda: session.run(fetches), self._patience())

    def _patience(self) -> Callable[[], None]:
        """Returns a check that raises if a parameter server is lost or the timeout has passed."""
        deadline = time.monotonic() + self._timeout

        def check() -> None:
            lost = diagnosis.lost_parameter_server(self._cluster, _LOST)
            if lost is None and time.monotonic() > deadline:
                lost = PeerError(f"no answer from {_DEVICE} within {self._timeout:g} s; {_LOST}")
            if lost is not None:
                raise lost

        return check

    def _wait(self, ask: Callable[[], Any], wanted: int, what: str) -> None:
        """Polls `ask` until it returns `wanted`; each new answer restarts the timeout."""
        answer = ask()
        since = said = time.monotonic()
        while answer != wanted:
            time.sleep(_POLL_SECS)
            before, answer = answer, ask()
            now = time.monotonic()
            if answer != before:
                since = said = now
            elif now - since > self._timeout:
                raise PeerError(
                    f"waited {self._timeout:g} s for {what}, it is at {answer}; see the "
                    "output of the other tasks, and start all of them again"
                )
            elif now - said > _SAY_SECS:
                said = now
                waited = f"{now - since:.0f} of {self._timeout:.0f} s"
                print(f"waiting for {what}: it is at {answer} ({waited})")

    def _show(self, pairs: Any) -> None:
        """Logs the content of the queue, by worker; raises a `PeerError` if numbers are missing."""
        numbers = collections.defaultdict(list)
        for number, worker in pairs:
            numbers[int(worker)].append(int(number))
        for worker, listed in sorted(numbers.items()):
            print(f"queue, from worker {worker}: {' '.join(map(str, listed))}")
        found = sorted(sum(numbers.values(), []))
        if found != list(range(1, self._total + 1)):
            raise PeerError(
                f"the queue held {len(found)} numbers, expected 1 to {self._total}; a worker "
                "exited early: see its output, and start all tasks again"
            )
        print(f"queue: {self._total} numbers, 1 to {self._total}, each once")


def _variable() -> Any:
    """Returns the counter of the legacy runtime, which all sessions share by its name."""
    return tf1.Variable(np.int64(0), name="var", use_resource=True)


def _queue(total: int) -> Any:
    """Returns the queue of pairs (number, worker), which has room for all and never blocks."""
    return tf.queue.FIFOQueue(
        total, [tf.int64, tf.int64], shapes=[(), ()], shared_name="shared_queue"
    )


def _increment(handle: Any, total: int) -> Any:
    """Returns the incremented counter, 1 to `total`, in one atomic operation."""
    return tf.raw_ops.ResourceCountUpTo(resource=handle, limit=total, T=tf.int64) + 1
