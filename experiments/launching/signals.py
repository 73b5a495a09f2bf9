"""Handles the signals to stop: at once or, if work would be lost, after the current steps.

Steps that need a lost task never finish. They are abandoned, so that the process exits within 20 s.
"""

from __future__ import annotations

import contextlib
import signal
import time
import types
from typing import Callable, Iterator

from compat.errors import Stopped
from compat.processes import stop_signals

_OVERDUE_SECS = 4.0  # Most steps and evaluations finish within this time.
_LINGER_SECS = 8.0  # Less than the ten seconds that Docker and our launcher allow before SIGKILL.
# Of the 20 s, the others are needed to notice the wait, to record the end and to exit.
_PATIENCE_SECS = 6.0


class Stop:
    """Whether this process was asked to stop; made by `signals`."""

    def __init__(self) -> None:
        self._signum: int | None = None
        self._received: list[int] = []
        self._requested_at = 0.0
        self._deferred = False
        self._lingers = self._interrupts = False
        self._raised: Stopped | None = None

    @property
    def requested(self) -> bool:
        """Whether a stop was requested; code inside `deferred` checks this and ends its work."""
        return self._signum is not None

    def is_overdue(self) -> bool:
        """Whether a stop was requested some seconds ago; then calls in progress are abandoned."""
        if self._signum is None or time.monotonic() - self._requested_at < _OVERDUE_SECS:
            return False
        self._interrupts = True
        return True

    def follow(self) -> None:
        """Requests a stop because another task was asked to stop."""
        if self._signum is None:
            self._request(signal.SIGTERM)

    def give_up(self, waited: float) -> None:
        """Raises `Stopped` if a wait for other tasks and a requested stop are both 6 s old.

        `waited` is the age of the wait in seconds. After `is_overdue` has interrupted a call, only
        the age of the request counts.
        """
        age = time.monotonic() - self._requested_at
        waited = age if self._interrupts else waited  # The wait began with the interrupted call.
        if self._signum is not None and min(waited, age) >= _PATIENCE_SECS:
            raise Stopped(
                self._signum,
                f"the current steps did not finish within {_PATIENCE_SECS:g} s, so no last "
                "checkpoint was written; training resumes from the one before",
            )

    def linger(self, needed: Callable[[], bool]) -> None:
        """Delays the requested stop of a task that serves others until they have finished.

        Cluster managers ask all tasks to stop at the same time. The task calls this repeatedly;
        after a request it raises `Stopped` once `needed` returns False, or 8 s have passed.
        """
        if self._signum is None:
            return
        if time.monotonic() - self._requested_at >= _LINGER_SECS or not needed():
            raise Stopped(self._signum)
        if not self._lingers:
            self._lingers = True
            print(f"asked to stop; serves the chief until it exits, for {_LINGER_SECS:g} s at most")

    @contextlib.contextmanager
    def deferred(
        self,
        lost: Callable[[BaseException], Exception | None] = lambda error: None,
        is_last: bool = False,
    ) -> Iterator[None]:
        """Defers a stop: the body checks `requested`; after it, a requested stop raises `Stopped`.

        When all tasks are asked to stop, some exit before this one has finished. So if the body
        fails after the request because another task was lost, `Stopped` is raised, too.

        Args:
          lost: returns the error of a lost task that caused an error, or None.
          is_last: whether only the closing of the records follows the body. That is quick, so a
            first signal does not interrupt it.
        """
        self._deferred = True
        try:
            yield
        except Exception as error:
            peer = None if self._signum is None else lost(error)
            if self._signum is None or peer is None:
                raise
            raise Stopped(self._signum, str(peer)) from error
        finally:
            self._deferred = is_last
        if self._signum is not None:
            raise Stopped(self._signum)

    def _handle(self, signum: int, frame: types.FrameType | None) -> None:
        """Handles a signal: raises `Stopped` for the first, unless deferred, or a second Ctrl-C.

        Other signals are ignored, as the process is stopping already.
        """
        self._received.append(signum)
        is_first = self._signum is None
        if is_first:
            self._request(signum)
        if (is_first and not self._deferred) or stop_signals.is_abort(self._received):
            self._raised = Stopped(signum)
            raise self._raised

    def _request(self, signum: int) -> None:
        self._signum, self._requested_at = signum, time.monotonic()


@contextlib.contextmanager
def signals() -> Iterator[Stop]:
    """Handles SIGINT, SIGTERM and SIGHUP inside the context."""
    stop = Stop()
    with stop_signals.handled(stop._handle):
        try:
            yield stop
        except Exception:
            if stop._raised is None:
                raise
            # C code that calls Python, such as TensorFlow's, turns `Stopped` into another error.
            raise stop._raised from None
