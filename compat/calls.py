"""Calls into TensorFlow that may never return, while Python stays in control."""

from __future__ import annotations

import threading
from concurrent import futures
from typing import Any, Callable


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
    outcome: futures.Future[Any] = futures.Future()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    # Not an executor's thread: those are waited for when Python ends.
    threading.Thread(target=call, name="tensorflow-call", daemon=True).start()
    while not futures.wait([outcome], timeout=every).done:
        check()
    return outcome.result()
