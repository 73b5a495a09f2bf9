"""Handles the signals that request a stop: SIGINT, SIGTERM and SIGHUP.

systemd, `scancel` and `pkill` send them to a program and its children at the same time. So children
that serve the others, and end with them, are started with these signals `blocked`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import types
from typing import Any, Callable, Iterator, Optional

from compat.errors import Stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, Optional[types.FrameType]], Any]


@contextlib.contextmanager
def handled(handler: Handler) -> Iterator[None]:
    """Handles the signals inside the context; SIGHUP only if it is not ignored, as by `nohup`.

    Raises:
      ValueError: This is not the main thread, the only one that receives signals.
    """
    before: dict[int, Any] = {}
    try:
        for signum in SIGNALS:
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                before[signum] = signal.signal(signum, handler)
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raises `Stopped` inside the context, so that a command leaves no child and no file behind.

    Only the first signal and a second Ctrl-C are raised, so that no other signal interrupts the
    clean-up. Does nothing on threads other than the main one.
    """
    received: list[int] = []

    def handle(signum: int, frame: types.FrameType | None) -> None:
        received.append(signum)
        if len(received) == 1 or is_abort(received):
            raise Stopped(signum)

    main_thread = threading.current_thread() is threading.main_thread()
    with handled(handle) if main_thread else contextlib.nullcontext():
        yield


def before_death(use: Callable[[int], object]) -> None:
    """Makes a stop signal call `use` with its number before it ends this process.

    `use` runs on a thread, because Python runs handlers only between two instructions of the main
    thread, which may wait in TensorFlow forever. Signals that are ignored, or that the program
    handles now or later, are not affected; neither are processes that are forked from this one.

    Raises:
      ValueError: This is not the main thread.
    """
    _BeforeDeath(use).install()


class _BeforeDeath:
    """The handler of `before_death`, and the thread that it wakes."""

    def __init__(self, use: Callable[[int], object]) -> None:
        self._use = use
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._forking = threading.local()  # The signals that the thread has blocked, and its mask.

    def install(self) -> None:
        for signum in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) == signal.SIG_DFL:
                signal.signal(signum, self._handle)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        os.register_at_fork(
            before=self._block, after_in_parent=self._unblock, after_in_child=self._forget
        )
        threading.Thread(target=self._wait, name="before-death", daemon=True).start()

    def _handle(self, signum: int, frame: types.FrameType | None) -> None:
        os.write(self._writing, bytes([signum]))  # The program may have another wake-up pipe.

    def _wait(self) -> None:
        while True:
            signum = os.read(self._reading, 1)[0]
            if signum in self._own():
                try:
                    self._use(signum)
                    sys.stdout.flush()
                finally:
                    os._exit(128 + signum)

    def _own(self) -> list[int]:
        """Returns the signals that this object handles, because the program does not."""
        both = (signal.SIGTERM, signal.SIGHUP)
        return [signum for signum in both if signal.getsignal(signum) == self._handle]

    def _block(self) -> None:
        """Blocks the signals that this object handles during a fork.

        A signal that arrived in the child just after the fork would be lost, or be written to this
        process's pipe. Signals that the program handles are not blocked: when signals are
        unblocked, Python runs their handlers and ignores the errors that these raise.
        """
        self._forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._own())

    def _unblock(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._forking.mask)

    def _forget(self) -> None:
        signal.set_wakeup_fd(-1)
        for signum in self._own():
            signal.signal(signum, signal.SIG_DFL)
        self._unblock()


def is_abort(received: list[int]) -> bool:
    """Returns whether the last signal is a second Ctrl-C, which stops without clean-up."""
    return received[-1] == signal.SIGINT and received.count(signal.SIGINT) > 1


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Blocks the signals inside the context, so that children are started with them blocked.

    Each child has to end with its parent by other means, such as the end of a pipe.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock() -> None:
    """Unblocks the signals in a process that was forked from one that was started `blocked`."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
