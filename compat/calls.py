"""Calls into TensorFlow that may never return, while Python stays in control."""

from __future__ import annotations

import functools
import threading
from concurrent import futures
from typing import Any, Callable

from compat._tensorflow import tf1


def delivered(function: Callable[[], Any]) -> Any:
    """Returns what `function` returns; calls it once more if gRPC has sent its request twice.

    Then TensorFlow, which wants none twice, raises an error though no peer is lost. It happens
    now and then on a busy machine. The update that was asked for may have been made already: the
    second call makes another one.

    Raises:
      Exception: what `function` raises.
    """
    try:
        return function()
    except tf1.errors.AbortedError as error:
        if "received twice" not in str(error):
            raise
    return function()


def delivering(make_callable: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """Returns a session's `make_callable`, by which queue runners enqueue, whose calls arrive."""

    @functools.wraps(make_callable)
    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        call = make_callable(*args, **kwargs)
        return lambda *given: delivered(lambda: call(*given))

    return make


def watched(function: Callable[[], Any], check: Callable[[], None], every: float = 2.0) -> Any:
    """Returns what `function` returns, called on a thread of its own.

    A call into TensorFlow cannot be interrupted, neither by Ctrl-C nor when it waits for a peer
    that is lost, for which TensorFlow 1.15 waits for ever. So it is left behind then.

    Args:
      function: the call.
      check: called every so often until then; what it raises, ends the waiting.
      every: seconds between two checks.

    Raises:
      Exception: what `function` or `check` raises.
    """
    outcome, thread = _begin(function)
    while not futures.wait([outcome], timeout=every).done:
        check()
    # A thread that leaves TensorFlow when Python ends makes the process abort.
    thread.join()
    return outcome.result()


def begun(function: Callable[[], Any]) -> futures.Future[Any]:
    """Returns the future result of `function`, which is called on a thread of its own from now."""
    return _begin(function)[0]


def _begin(function: Callable[[], Any]) -> tuple[futures.Future[Any], threading.Thread]:
    outcome: futures.Future[Any] = futures.Future()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    # Not an executor's thread: those are waited for when Python ends.
    thread = threading.Thread(target=call, name="tensorflow-call", daemon=True)
    thread.start()
    return outcome, thread
