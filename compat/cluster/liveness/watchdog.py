"""Makes calls into TensorFlow that may never return, while Python stays in control."""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
from concurrent import futures
from typing import Any, Callable, Iterator

from compat._tensorflow import tf1

CLOSE_SECS = 5.0


def retry_duplicate_rpc(function: Callable[[], Any]) -> Any:
    """Returns what `function` returns; calls it once more if gRPC has sent its request twice.

    That happens on a busy machine, and is an error of TensorFlow though no peer is lost. The update
    that was asked for may have been made already: the second call makes another one.
    """
    try:
        return function()
    except tf1.errors.OpError as error:  # Of any kind, if parts of several tasks have failed.
        if "received twice" not in str(error):
            raise
    return function()


def retrying(make_callable: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """Wraps a session's `make_callable`, by which queue runners enqueue, in the same retry."""

    @functools.wraps(make_callable)
    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        call = make_callable(*args, **kwargs)
        return lambda *given: retry_duplicate_rpc(lambda: call(*given))

    return make


# The calls that idle threads take: a thread is made in half a millisecond on a busy machine, a call
# of one that waits in 30 us.
_idle: list[queue.SimpleQueue[tuple[futures.Future[Any], Callable[[], Any]]]] = []
_left_behind: set[futures.Future[Any]] = set()  # That have not returned yet.


def run_with_watchdog(
    function: Callable[[], Any], poll: Callable[[], None], every: float = 2.0
) -> Any:
    """Returns what `function` returns, called on another thread.

    A call into TensorFlow cannot be interrupted, and may wait for a lost peer for ever. So it is
    left behind when `poll`, called every few seconds, raises.
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
    """Opens a session; its own `with` would wait 30 s for a lost server, and print a traceback."""
    session = tf1.Session(target, graph=graph, config=config)
    try:
        yield session
    finally:
        close_session(session.close)


def close_session(close: Callable[[], Any], patience: float = CLOSE_SECS) -> None:
    """Closes a session, which may wait for lost peers: leaves it behind after `patience` seconds.

    What `close` raises is ignored: the failed call has reported the loss.
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
    try:
        calls = _idle.pop()
    except IndexError:
        calls = queue.SimpleQueue()
        # Not an executor's thread: those are waited for when Python ends.
        thread = threading.Thread(target=_serve, args=(calls,), name="tensorflow-call", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # When Python 3.12 ends, it starts no thread any more: called here.
            _call(function, outcome)
            return outcome
    outcome.add_done_callback(lambda _: _idle.append(calls))
    calls.put((outcome, function))
    return outcome


def _serve(calls: queue.SimpleQueue[tuple[futures.Future[Any], Callable[[], Any]]]) -> None:
    while True:
        outcome, function = calls.get()
        _call(function, outcome)
        del outcome, function  # What they hold is not this thread's to keep.


def _call(function: Callable[[], Any], outcome: futures.Future[Any]) -> None:
    try:
        outcome.set_result(function())
    except BaseException as error:
        outcome.set_exception(error)
