"""Ctrl-C and SIGTERM: at once while nothing is at stake, after the current updates in training."""

from __future__ import annotations

import contextlib
import signal
import types
from typing import Iterator


class Stopped(BaseException):
    """The user or the cluster manager asked this process to stop.

    Not an `Exception`, like `KeyboardInterrupt`: nobody should take it for a failure.

    Attributes:
      exit_code: 128 and the signal's number, as shells count.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


class Stop:
    """Whether a stop was asked for; made by `signals`.

    Attributes:
      raised: what was raised at once, or None.
    """

    def __init__(self) -> None:
        self._signum: int | None = None
        self.raised: Stopped | None = None
        self._deferred = False

    @property
    def requested(self) -> bool:
        """Whether a signal came while `deferred`."""
        return self._signum is not None

    def follow(self) -> None:
        """Takes note that another task was asked to stop, with which this one has to."""
        if self._signum is None:
            self._signum = signal.SIGTERM

    def handle(self, signum: int, frame: types.FrameType | None) -> None:
        """Handles the signal: raises, or takes note if it is the first while `deferred`."""
        del frame
        if self._deferred and not self.requested:
            self._signum = signum
        else:
            self.raised = Stopped(signum)
            raise self.raised

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """While inside, the first signal is only noted; the body looks at `requested`.

        Raises:
          Stopped: when a body that was asked to stop is left.
        """
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        if self._signum is not None:
            raise Stopped(self._signum)


@contextlib.contextmanager
def signals() -> Iterator[Stop]:
    """Handles SIGINT and SIGTERM while inside."""
    stop = Stop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop.handle) for number in numbers]
    try:
        yield stop
    except Exception:
        if stop.raised is None:
            raise
        # C code that calls Python, amid TensorFlow say, makes another error of it.
        raise stop.raised from None
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
