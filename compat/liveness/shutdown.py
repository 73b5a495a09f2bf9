"""Ends parameter servers when training is over.

Every serving task owns a queue on its own TensorFlow server. A task that trains puts its number
there when it is done; the serving task exits when all have, or a while after the chief has. The
idea, a queue with a `shared_name` instead of an endless `join`, is a TensorFlow maintainer's.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
from concurrent import futures
from typing import Callable, Mapping

from compat._tensorflow import tf1
from compat.liveness.watchdog import connected, submit

_NAME = "compat_training_over"
_CHIEF = 0
_NOBODY = -1


def _queue(device: str, run: str) -> tf1.QueueBase:
    with tf1.device(device):
        # Room for one number of each task of any cluster: putting one in never waits.
        return tf1.FIFOQueue(100000, [tf1.int32], shapes=[()], shared_name=_NAME + run)


def _config(device: str, patience: float = 0.0) -> tf1.ConfigProto:
    # Only the task at hand: a session must not wait for peers that have not come or have gone.
    return tf1.ConfigProto(device_filters=[device], operation_timeout_in_ms=int(1000 * patience))


def wait_until_over(
    target: str,
    device: str,
    trainers: int,
    grace: float = 8.0,
    say: Callable[[str], None] = print,
    poll: Callable[[], None] = lambda: None,
    run: str = "",
) -> None:
    """Returns when all trainers are done.

    Args:
      target: the session target of the task's own server.
      device: the task's own device, such as "/job:ps/task:0".
      trainers: how many will report, numbered from 0, the chief.
      grace: seconds that the others still get when the chief is done, for one that died
        never reports.
      say: receives a line about trainers that did not report.
      poll: called every half second until the chief is done; what it raises ends the wait.
      run: the fingerprint of the run; trainers of others are ignored.
    """
    reports: queue.Queue[int] = queue.Queue()

    def listen() -> None:
        with tf1.Graph().as_default() as graph:
            report = _queue(device, run).dequeue()
            with connected(target, graph, _config(device)) as session:
                trainer = 0
                while trainer != _NOBODY:
                    trainer = int(session.run(report))
                    reports.put(trainer)

    # In a thread of its own, because Python handles no signal (Ctrl-C) while it is in TensorFlow.
    listener = threading.Thread(target=listen, name="training-over", daemon=True)
    try:
        listener.start()
        missing = set(range(trainers))
        deadline = float("inf")
        while missing and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                missing.discard(reports.get(timeout=0.5))
            if _CHIEF in missing:
                poll()
            else:
                deadline = min(deadline, time.monotonic() + grace)
        if missing:
            say(f"training is over; trainers {sorted(missing)} did not report their end")
    finally:
        # A thread that is inside TensorFlow when Python ends makes the process abort.
        announce({device: target[len("grpc://") :]}, _NOBODY, run=run)
        if listener.is_alive():
            listener.join(timeout=5)


def announce(
    addresses: Mapping[str, str], trainer: int, patience: float = 4.0, run: str = ""
) -> None:
    """Reports to serving tasks that this trainer is done.

    Args:
      addresses: host:port of each serving task's server, by device.
      trainer: the trainer's number; 0 is the chief.
      patience: seconds for an answer; a task that does not answer is lost already. After those for
        two no call is left that comes back amid Python's end, which would abort the process.
      run: as for `wait_until_over`.
    """

    def tell(device: str, address: str) -> None:
        with tf1.Graph().as_default() as graph:
            report = _queue(device, run).enqueue(trainer)
            try:
                with connected("grpc://" + address, graph, _config(device, patience)) as session:
                    session.run(report)
            except tf1.errors.OpError:
                pass  # It is gone, so it need not be told.

    told = [submit(functools.partial(tell, *item)) for item in addresses.items()]
    futures.wait(told, timeout=2.5 * patience)
