"""Ctrl-C and SIGTERM: at once while nothing is at stake, after the current updates in training.

Current updates may never come to an end, if they need a task that has gone silent. They are given
up early enough to end within the 20 s that are promised.
"""

from __future__ import annotations

import contextlib
import signal
import time
import types
from typing import Callable, Iterator

_LINGER_SECS = 8.0  # Within the ten that Docker, and our launcher, give a task before they kill it.
_PATIENCE_SECS = 6.0  # The check that finds it, what is recorded, and Python's end take the rest.


class Stopped(BaseException):
    """The user or the cluster manager asked this process to stop.

    Not an `Exception`, like `KeyboardInterrupt`: nobody should take it for a failure.

    Attributes:
      exit_code: 128 and the signal's number, as shells count.
      loses: whether it was at the cost of a last checkpoint; then the message says so.
    """

    def __init__(self, signum: int, loss: str = "") -> None:
        super().__init__(loss or signal.Signals(signum).name)
        self.exit_code = 128 + signum
        self.loses = bool(loss)


class Stop:
    """Whether a stop was asked for; made by `signals`.

    Attributes:
      raised: what was raised at once, or None.
    """

    def __init__(self) -> None:
        self._signum: int | None = None
        self._noted = 0.0
        self._lingers = False
        self.raised: Stopped | None = None
        self._deferred = False

    @property
    def requested(self) -> bool:
        """Whether a signal came while `deferred`."""
        return self._signum is not None

    def follow(self) -> None:
        """Takes note that another task was asked to stop, with which this one has to."""
        if self._signum is None:
            self._note(signal.SIGTERM)

    def handle(self, signum: int, frame: types.FrameType | None) -> None:
        """Handles the signal: raises, or takes note if it is the first while `deferred`."""
        del frame
        if self._deferred and not self.requested:
            self._note(signum)
        else:
            self.raised = Stopped(signum)
            raise self.raised

    def _note(self, signum: int) -> None:
        self._signum, self._noted = signum, time.monotonic()

    def give_up(self, waited: float) -> None:
        """Ends a wait for other tasks that goes on for long although a stop was asked for.

        Args:
          waited: for how many seconds it has gone on, in the end without an answer of theirs.

        Raises:
          Stopped: it is time to, as it is then for this wait and all that would follow.
        """
        if self._signum is None:
            return
        if min(waited, time.monotonic() - self._noted) >= _PATIENCE_SECS:
            raise Stopped(
                self._signum,
                f"the current updates did not end in {_PATIENCE_SECS:g} s, so no last checkpoint "
                "was written; training goes on from the one before",
            )

    def linger(self, needed: Callable[[], bool], say: Callable[[str], None] = print) -> None:
        """Ends a task that others need to end well, if a stop was asked for: not before them.

        Whoever ends a whole cluster asks all of its tasks at a time.

        Args:
          needed: whether it is needed yet.
          say: told, once, that it lingers.

        Raises:
          Stopped: it is not needed any more, or was for as long as it can wait.
        """
        if self._signum is None:
            return
        if time.monotonic() - self._noted >= _LINGER_SECS or not needed():
            raise Stopped(self._signum)
        if not self._lingers:
            self._lingers = True
            say(f"asked to end; serves the chief to its end, for {_LINGER_SECS:g} s at most")

    @contextlib.contextmanager
    def deferred(
        self, lost: Callable[[BaseException], Exception | None] = lambda error: None
    ) -> Iterator[None]:
        """While inside, the first signal is only noted; the body looks at `requested`.

        Args:
          lost: returns the lost peer behind an error, or None. Whoever ends a cluster asks all of
            its tasks to, and some may be gone before this one has come to its end.

        Raises:
          Stopped: when a body that was asked to stop is left.
        """
        self._deferred = True
        try:
            yield
        except Exception as error:
            if self._signum is not None:
                gone = lost(error)
                if gone is not None:
                    raise Stopped(self._signum, str(gone)) from error
            raise
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
