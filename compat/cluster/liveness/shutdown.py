"""Ends parameter servers when training ends.

Every serving task owns a queue on its own server. A task that trains puts its number there when it
is done; the serving task exits when all have, or when one has that trains alone. A while after the
chief is done, it no longer waits for those that do not answer, and a while after the chief has
failed, for nobody.
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
_FAILED = -2  # The chief.
_ALONE = -3  # The chief, which has handed out all updates: there are no other trainers.
_GRACE_SECS = 8.0  # For the other trainers when the chief has ended: one that died never reports.
# For an answer; a task that does not answer is lost already. After those for two no call is left
# that comes back amid Python's end, which would abort the process.
_PATIENCE_SECS = 4.0


def _queue(run: str) -> tf1.QueueBase:
    # Room for one number of each task of any cluster: putting one in never waits.
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
    """Returns when all trainers are done, which are numbered from 0, the chief.

    `target` and `device` are those of the task itself. `poll` is called every half second until
    the chief is done; what it raises ends the wait. From then on the others are waited for as long
    as one of them `answers`. Trainers of another `run` are ignored.
    """
    reports: queue.Queue[int] = queue.Queue()

    def listen() -> None:
        with key_value.session(target, device, patience=0) as session:
            report, trainer = _queue(run).dequeue(), _CHIEF
            while trainer != _NOBODY:
                trainer = int(session.run(report))
                reports.put(trainer)

    # In a thread of its own, because Python handles no signal (Ctrl-C) while it is in TensorFlow.
    listener = threading.Thread(target=listen, name="training-over", daemon=True)
    try:
        listener.start()
        missing = set(range(trainers))
        done = deadline = float("inf")  # When the chief was; until when the others are waited for.
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
        # A thread that is inside TensorFlow when Python ends makes the process abort.
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
      addresses: of the serving tasks, by device.
      trainer: its number; the chief is 0.
      run: what the tasks of a run have in common.
      failed: whether it ends by an error.
      alone: whether there are no other trainers.
    """
    report = _FAILED if failed and trainer == _CHIEF else trainer
    report = _ALONE if alone else report

    def tell(device: str, address: str) -> None:
        opened = key_value.session("grpc://" + address, device, _PATIENCE_SECS)
        # If it is gone, it need not be told.
        with contextlib.suppress(tf1.errors.OpError), opened as session:
            session.run(_queue(run).enqueue(report))

    told = [submit(functools.partial(tell, *item)) for item in addresses.items()]
    futures.wait(told, timeout=2.5 * _PATIENCE_SECS)
