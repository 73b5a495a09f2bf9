"""Makes calls into TensorFlow that may never return, on threads that can be left behind.

A call that returns from TensorFlow while Python ends aborts the process. So the process waits at
its end for the calls that have not returned, for a limited time.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import queue
import threading
from concurrent import futures
from typing import Any, Callable, Iterator, Tuple

from compat._tensorflow import private, tf1

CLOSE_SECS = 5.0
# Time for the calls that have not returned when the process ends. A call that takes longer waits
# for a lost peer, and will not return while Python ends.
_EXIT_SECS = 15.0


def retry_duplicate_rpc(function: Callable[[], Any]) -> Any:
    """Calls `function`, and calls it again if gRPC has sent its request twice; returns its result.

    gRPC does so on a busy machine, and TensorFlow then raises an error although no peer is lost. If
    the first request has made its update already, the second call makes another one.
    """
    try:
        return function()
    except tf1.errors.OpError as error:  # The class varies if several tasks have failed.
        if "received twice" not in str(error):
            raise
    return function()


def fill_queue(session: Any, function: Callable[[], Any]) -> Any:
    """Calls `function`, which a queue runner repeats in a session; returns its result.

    Closing the session ends the queue runner as closing its queue does. Otherwise its thread would
    print a traceback, or its coordinator raise the error where it is joined. The end of the process
    waits for a call whose session is closed, since its coordinator waits for a limited time.

    Raises:
      OutOfRangeError: the session is closed.
    """
    returned: futures.Future[None] = futures.Future()
    _filling[returned] = session
    try:
        return function()
    except tf1.errors.OpError:
        if not private.is_closed(session):
            raise
        raise tf1.errors.OutOfRangeError(None, None, "the session is closed") from None
    finally:
        del _filling[returned]
        returned.set_result(None)


def retrying(session: Any) -> Callable[..., Any]:
    """Returns a session's `make_callable`, whose callables are those of queue runners.

    A callable applies `retry_duplicate_rpc` and `fill_queue`.
    """
    make_callable = session.make_callable

    @functools.wraps(make_callable)
    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        call = make_callable(*args, **kwargs)

        def retried(*arguments: Any) -> Any:
            function = functools.partial(call, *arguments)
            return fill_queue(session, lambda: retry_duplicate_rpc(function))

        return retried

    return make


# The calls for idle threads. Creating a thread takes half a millisecond on a busy machine, a call
# on an idle thread 30 us.
_Call = Tuple["futures.Future[Any]", Callable[[], Any], "futures.Future[None]"]
_idle: list[queue.SimpleQueue[_Call]] = []
# A future of each call, which is done when the call has returned and its thread has released all
# objects of the call.
_pending: set[futures.Future[None]] = set()
_filling: dict[futures.Future[None], Any] = {}  # The sessions of calls of queue runners.
_left_behind: set[futures.Future[Any]] = set()  # Those of them for whose result nobody waits.


def run_with_watchdog(
    function: Callable[[], Any], poll: Callable[[], None], every: float = 2.0
) -> Any:
    """Calls `function` on another thread, and returns its result.

    A call into TensorFlow cannot be interrupted, and may wait for a lost peer for ever. So this
    calls `poll` every few seconds, and leaves the call behind if `poll` raises.
    """
    outcome = submit(function)
    try:
        while not futures.wait([outcome], timeout=every).done:
            poll()
    except BaseException:
        _leave_behind(outcome)
        raise
    return outcome.result()


@contextlib.contextmanager
def connected(target: str, graph: Any, config: Any) -> Iterator[tf1.Session]:
    """Opens a session that closes within seconds; a plain `with` waits 30 s for a lost server."""
    session = tf1.Session(target, graph=graph, config=config)
    try:
        yield session
    finally:
        close_session(session.close)


def close_session(close: Callable[[], Any], patience: float = CLOSE_SECS) -> None:
    """Closes a session; leaves the call behind if it takes longer than `patience` seconds.

    An error of `close` is ignored, because an earlier call of the session has reported the loss.
    """
    outcome = submit(close)
    if not futures.wait([outcome], timeout=patience).done:
        _leave_behind(outcome)


def is_stuck() -> bool:
    """Whether a call that was left behind has not returned yet."""
    return bool(_left_behind)


def _leave_behind(outcome: futures.Future[Any]) -> None:
    _left_behind.add(outcome)
    outcome.add_done_callback(_left_behind.discard)


def submit(function: Callable[[], Any]) -> futures.Future[Any]:
    """Calls `function` on another thread; returns its future result."""
    outcome: futures.Future[Any] = futures.Future()
    released: futures.Future[None] = futures.Future()
    _pending.add(released)
    released.add_done_callback(_pending.discard)
    try:
        calls = _idle.pop()
    except IndexError:
        calls = queue.SimpleQueue()
        # Not an executor's thread, because Python waits for those when it exits.
        thread = threading.Thread(target=_serve, args=(calls,), name="tensorflow-call", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # Python 3.12 starts no thread while it exits.
            _call(function, outcome)
            released.set_result(None)
            return outcome
    outcome.add_done_callback(lambda _: _idle.append(calls))
    calls.put((outcome, function, released))
    return outcome


def _serve(calls: queue.SimpleQueue[_Call]) -> None:
    while True:
        outcome, function, released = calls.get()
        _call(function, outcome)
        # An idle thread must not keep the objects of a call. The last reference to a session
        # destroys it, which is a call into TensorFlow as well.
        del outcome, function
        released.set_result(None)
        del released


def _call(function: Callable[[], Any], outcome: futures.Future[Any]) -> None:
    try:
        outcome.set_result(function())
    except BaseException as error:
        outcome.set_exception(error)


def _wait_for_pending() -> None:
    filling = _filling.copy()
    closed = [returned for returned in filling if private.is_closed(filling[returned])]
    futures.wait([*_pending, *closed], timeout=_EXIT_SECS)


def _forget_threads() -> None:
    """Forgets the threads of the parent, which a forked child does not have."""
    for each in (_idle, _pending, _filling, _left_behind):
        each.clear()


# Registered before what other modules do at exit, so it waits for the calls that they make as well.
atexit.register(_wait_for_pending)
os.register_at_fork(after_in_child=_forget_threads)
