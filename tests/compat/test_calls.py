"""Calls that arrive twice, and calls that never return; errors are TensorFlow's own, made here."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import types
import weakref
from pathlib import Path
from typing import Any

import pytest

from compat import tf1
from compat.cluster.liveness.watchdog import (
    is_stuck,
    retry_duplicate_rpc,
    retrying,
    run_with_watchdog,
)


def failing(*errors: Any) -> Any:
    """Returns a function that raises one error a call, and then returns 42."""
    left = list(errors)

    def function() -> int:
        if left:
            raise left.pop(0)
        return 42

    return function


def aborted(message: str) -> Any:
    return tf1.errors.AbortedError(None, None, message)


def test_a_request_that_came_twice_is_made_again() -> None:
    twice = aborted("The same RunGraph (Worker) request was received twice.")
    assert retry_duplicate_rpc(failing()) == 42
    assert retry_duplicate_rpc(failing(twice)) == 42
    with pytest.raises(tf1.errors.AbortedError):
        retry_duplicate_rpc(failing(twice, twice))
    # As where the part of another task is cancelled by it.
    cancelled = tf1.errors.CancelledError(None, None, f"RecvFromRemoteAsync is cancelled. {twice}")
    assert retry_duplicate_rpc(failing(cancelled)) == 42


def test_what_queue_runners_call_is_made_again() -> None:
    twice = aborted("The same RunGraph (Worker) request was received twice.")
    session = types.SimpleNamespace(make_callable=lambda operation: failing(twice))
    assert retrying(session)("enqueue")() == 42


def test_closing_a_session_ends_what_queue_runners_call() -> None:
    with tf1.Graph().as_default():
        queue = tf1.FIFOQueue(1, tf1.int32)
        enqueue = queue.enqueue(1)
        session = tf1.Session()
    calls = retrying(session)(enqueue)
    calls()
    closing = threading.Timer(0.5, session.close)
    closing.start()
    with pytest.raises(tf1.errors.OutOfRangeError, match="closed"):
        calls()  # The queue is full.
    closing.join()


def test_other_errors_are_raised() -> None:
    with pytest.raises(tf1.errors.AbortedError, match="restarted"):
        retry_duplicate_rpc(failing(aborted("the worker was restarted")))
    with pytest.raises(tf1.errors.UnavailableError):
        retry_duplicate_rpc(failing(tf1.errors.UnavailableError(None, None, "lost")))


def nothing() -> None:
    """A check that finds nothing wrong."""


def test_watched_calls_give_what_they_return_or_raise() -> None:
    assert run_with_watchdog(lambda: 42, nothing) == 42
    with pytest.raises(ValueError, match="^wrong$"):
        run_with_watchdog(failing(ValueError("wrong")), nothing)


def test_calls_one_after_the_other_share_a_thread() -> None:
    threads = {run_with_watchdog(threading.get_ident, nothing) for _ in range(100)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_calls_at_a_time_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2)
    assert run_with_watchdog(lambda: run_with_watchdog(lambda: 42, nothing), nothing) == 42
    other = threading.Thread(target=run_with_watchdog, args=(lambda: both.wait(60), nothing))
    other.start()
    run_with_watchdog(lambda: both.wait(60), nothing)
    other.join()


def test_a_call_that_never_returns_is_left_behind() -> None:
    never, looks = threading.Event(), iter([None, None, ConnectionError("gone")])

    def check() -> None:
        error = next(looks)
        if error is not None:
            raise error

    with pytest.raises(ConnectionError, match="^gone$"):
        run_with_watchdog(never.wait, check, every=0.01)
    assert run_with_watchdog(lambda: 42, nothing) == 42  # Not on the thread that is at work yet.
    assert is_stuck()
    never.set()
    deadline = time.monotonic() + 60
    while is_stuck():
        assert time.monotonic() < deadline


def test_what_a_call_returns_late_is_not_kept() -> None:
    class Result:
        """What a call returns after it was left behind."""

    late, results = threading.Event(), [Result()]
    kept = weakref.ref(results[0])

    def call() -> Result:
        late.wait()
        return results.pop()

    def check() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="^gone$"):
        run_with_watchdog(call, check, every=0.01)
    late.set()
    deadline = time.monotonic() + 60
    while kept() is not None:
        assert time.monotonic() < deadline
        gc.collect()


def test_a_call_at_the_very_end_of_python() -> None:
    """Where Python 3.12 starts no thread any more."""
    program = "import atexit; from compat.cluster.liveness.watchdog import submit\n"
    program += "atexit.register(lambda: print(submit(lambda: 42).result()))"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, stdout=subprocess.PIPE, timeout=150).stdout == b"42\n"


def test_python_waits_at_its_end_for_the_objects_of_a_call() -> None:
    """The last reference to a session destroys it, by a call into TensorFlow."""
    program = """
import time
from compat.cluster.liveness.watchdog import submit

class Call:
    def __call__(self):
        pass
    def __del__(self, sleep=time.sleep):
        sleep(1)
        print("destroyed", flush=True)

submit(Call())
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, stdout=subprocess.PIPE, timeout=150).stdout == b"destroyed\n"


def test_python_waits_at_its_end_for_the_queue_runners_of_a_closed_session() -> None:
    """Those of a session that is open may wait for ever."""
    program = """
import threading
import time
from compat import tf1
from compat.cluster.liveness.watchdog import fill_queue

def fill(secs):
    time.sleep(secs)
    print("filled in %d s" % secs, flush=True)

closed, other = tf1.Session(), tf1.Session()
for session, secs in ((closed, 2), (other, 200)):
    call = lambda secs=secs: fill(secs)
    threading.Thread(target=fill_queue, args=(session, call), daemon=True).start()
closed.close()
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, stdout=subprocess.PIPE, timeout=150).stdout == (
        b"filled in 2 s\n"
    )


@pytest.mark.long
def test_a_call_that_returns_while_python_ends_does_not_abort_it(programs: Path) -> None:
    command = [sys.executable, str(programs / "late_close.py")]
    ended = subprocess.run(command, capture_output=True, timeout=150)
    assert ended.stdout == b"left behind: True\n"
    assert ended.returncode == 3, ended.stderr.decode()
