"""Stops the threads of a supervisor's process together, by TensorFlow's `Coordinator`."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any, Iterator

from compat._tensorflow import tf1
from compat.errors import is_success

_REPORT_SECS = 5.0


@contextlib.contextmanager
def reported(wait: str) -> Iterator[None]:
    """Prints the line `wait` if the body, a wait, takes longer than a few seconds."""
    timer = threading.Timer(_REPORT_SECS, print, [wait])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def is_failing(coord: Any) -> bool:
    """Whether a thread has reported an error to `coord`, or an error leaves the program.

    The end of the input and `sys.exit(0)` are no failures. An error that the program is handling
    counts as one, since Python does not tell `except` from `finally`.
    """
    try:
        coord.raise_requested_exception()
    except BaseException:  # `stop` raises it.
        return True
    error = sys.exc_info()[1]
    is_end = isinstance(error, (tf1.errors.OutOfRangeError, StopIteration)) or is_success(error)
    return error is not None and not is_end


class Coordinated:
    """The methods of a supervisor that call its `Coordinator`, `coord`."""

    coord: Any

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return bool(self.coord.should_stop())

    def request_stop(self, ex: Any = None) -> None:
        """Asks every thread to stop; `stop` then raises `ex`, an error or a `sys.exc_info()`."""
        if isinstance(ex, BaseException):
            # The traceback is passed, because TensorFlow would look for one in `sys.exc_info()`.
            ex = (type(ex), ex, ex.__traceback__)
        self.coord.request_stop(ex)

    def stop_on_exception(self) -> Any:
        """Returns a context manager that requests a stop when its body raises."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Blocks until a stop is requested."""
        self.coord.wait_for_stop()

    def loop(
        self, timer_interval_secs: float, target: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        """Starts a thread that calls `target` every so many seconds, until the stop."""
        looper = tf1.train.LooperThread(
            self.coord, timer_interval_secs, target=target, args=args, kwargs=kwargs
        )
        looper.start()
        return looper

    Loop = loop
    RequestStop = request_stop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
