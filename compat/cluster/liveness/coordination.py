"""Stops the threads of a supervisor's process together, by TensorFlow's `Coordinator`."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1


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
