"""Ends parameter servers when training ends.

Every serving task has a queue on its own server. A training task puts its number into the queue
when it is done. The serving task exits when all training tasks are done, or when a task is done
that reports to be the only one. Eight seconds after the chief is done, the serving task no longer
waits for tasks that do not answer. Eight seconds after the chief has failed, it waits for no task.
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
from compat.cluster.liveness import key_value
from compat.cluster.liveness.watchdog import submit

_NAME = "compat_training_over"
_CHIEF = 0
_NOBODY = -1
_FAILED = -2  # The chief has failed.
_ALONE = -3  # The chief has scheduled all updates, and there are no other trainers.
_GRACE_SECS = 8.0  # Time for other trainers after the chief's end; lost ones never report.
# Time for an answer; a task that does not answer is lost. After twice this time no call is pending
# that could return while Python exits, which would abort the process.
_PATIENCE_SECS = 4.0


def _queue(run: str) -> tf1.QueueBase:
    # The capacity is larger than the number of tasks, so that `enqueue` never waits.
    return tf1.FIFOQueue(100000, [tf1.int32], shapes=[()], shared_name=_NAME + run)


def wait_until_over(
    target: str,
    device: str,
    trainers: int,
    say: Callable[[str], None] = print,
    poll: Callable[[], None] = lambda: None,
    run: str = "",
    answers: Callable[[int], bool] = lambda trainer: False,
) -> None:
    """Returns when all trainers are done; their numbers begin at 0, the chief.

    `target` and `device` are those of this task. `poll` is called every half second until the chief
    is done; an error in it ends the wait. From then on this waits for the others as long as one of
    them `answers`. Trainers of another `run` are ignored.
    """
    reports: queue.Queue[int] = queue.Queue()

    def listen() -> None:
        with key_value.session(target, device, patience=0) as session:
            report, trainer = _queue(run).dequeue(), _CHIEF
            while trainer != _NOBODY:
                trainer = int(session.run(report))
                reports.put(trainer)

    # On another thread, because Python handles no signal (Ctrl-C) during a call into TensorFlow.
    listener = threading.Thread(target=listen, name="training-over", daemon=True)
    try:
        listener.start()
        missing = set(range(trainers))
        done = deadline = float("inf")  # When the chief was done; when the wait ends.
        has_failed = has_said = False
        while missing and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                trainer = reports.get(timeout=0.5)
                has_failed = has_failed or trainer == _FAILED
                missing.discard(_CHIEF if trainer == _FAILED else trainer)
                if trainer == _ALONE:
                    missing.clear()
            if _CHIEF in missing:
                poll()
                continue
            now = time.monotonic()
            done = min(done, now)
            if not has_failed and any(map(answers, missing)):
                deadline = now + _GRACE_SECS
                if now > done + _GRACE_SECS and not has_said:
                    has_said = True
                    say(
                        f"the chief is done; serving trainers {sorted(missing)}, which train on: "
                        "nobody saves checkpoints from now on"
                    )
            deadline = min(deadline, now + _GRACE_SECS)
        if missing:
            say(f"training has ended; trainers {sorted(missing)} did not report their end")
    finally:
        # A thread in a call into TensorFlow aborts the process when Python exits.
        announce({device: target[len("grpc://") :]}, _NOBODY, run=run)
        if listener.is_alive():
            listener.join(timeout=5)


def announce(
    addresses: Mapping[str, str],
    trainer: int,
    run: str = "",
    failed: bool = False,
    alone: bool = False,
) -> None:
    """Reports to serving tasks, given as host:port by device, that this trainer is done.

    Args:
      addresses: the addresses of the serving tasks, by device.
      trainer: the number of this trainer; the chief is 0.
      run: the fingerprint of the run.
      failed: whether this trainer ends by an error.
      alone: whether there are no other trainers.
    """
    report = _FAILED if failed and trainer == _CHIEF else trainer
    report = _ALONE if alone else report

    def tell(device: str, address: str) -> None:
        opened = key_value.session("grpc://" + address, device, _PATIENCE_SECS)
        # A lost task needs no announcement.
        with contextlib.suppress(tf1.errors.OpError), opened as session:
            session.run(_queue(run).enqueue(report))

    announcements = [submit(functools.partial(tell, *item)) for item in addresses.items()]
    futures.wait(announcements, timeout=2.5 * _PATIENCE_SECS)
