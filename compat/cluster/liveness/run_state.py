"""The state of a task's part in a run, and the end of the process, which announces it."""

from __future__ import annotations

import atexit
import enum
import os
import sys
from multiprocessing import util
from typing import Any, Callable

from compat.errors import PeerError, exit_code_of, is_retryable, is_success


class RunState(enum.Enum):
    """State of one task's part in a run.

    A task starts in the state ``WAITING``; leaving a session without an error does not change it.

    ``WAITING`` -> ``RUNNING``: the tasks that it needs are there, and its first session opens; or
    it serves others.

    ``WAITING`` or ``RUNNING`` -> ``FAILED`` or ``RETRYING``: an error leaves a session or the
    process, or `run_main` exits with a code other than 0. ``RETRYING`` if the same command may
    succeed when it is run again, as after a lost peer or SIGTERM; see `compat.errors.is_retryable`.

    ``FAILED`` or ``RETRYING`` -> ``RUNNING``: the program handles the error and opens a session.

    Any of them -> ``SUCCEEDED``: the process exits with 0, in whatever way; or, if the task serves,
    all tasks that train are done.

    When the process exits, it announces ``SUCCEEDED`` or ``FAILED`` to the tasks that serve, and
    the state is final. It does not announce ``RETRYING``, so those tasks wait until this one
    is started again.

    An exit handler of Python cannot read the code of a `sys.exit`. So a `sys.exit` outside of any
    session and of `run_main` counts as a `return`, whatever its code: the task stays ``FAILED`` or
    ``RETRYING`` if its last session failed, and is ``SUCCEEDED`` otherwise.
    """

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRYING = "retrying"


class Lifecycle:
    """Stores the state of one task's part in a run, and changes it.

    Args:
      lost_peer: returns the lost peer that caused an error, or None.

    Attributes:
      state: the `RunState`.
    """

    def __init__(self, lost_peer: Callable[[BaseException], PeerError | None]) -> None:
        self._lost_peer = lost_peer
        self.state = RunState.WAITING
        self._error: BaseException | None = None
        self._lost: PeerError | None = None
        self._is_announced = False

    def begin(self) -> None:
        """Records that the task trains or serves; earlier failures and losses no longer count."""
        self._error = self._lost = None
        self._become(RunState.RUNNING)

    def end(self, error: BaseException | None) -> PeerError | None:
        """Records the end of the task by an error, or by none.

        Returns the lost peer that caused the error, or None.
        """
        if error is None or self._error is not error:
            self._error = error
            self._lost = None if error is None else self._lost_peer(error)
        code = exit_code_of(self._lost or error)
        failed = RunState.RETRYING if is_retryable(code) else RunState.FAILED
        self._become(failed if code else RunState.SUCCEEDED)
        return self._lost

    def announce(self) -> RunState | None:
        """Returns the final state to announce; None if it was announced, or is ``RETRYING``."""
        if self._is_announced or self.state is RunState.RETRYING:
            return None
        if self.state is not RunState.FAILED:
            self.state = RunState.SUCCEEDED
        self._is_announced = True
        return self.state

    def _become(self, state: RunState) -> None:
        if not self._is_announced:
            self.state = state


class SuccessfulExit:
    """Delays a `sys.exit(0)` of its body, until the resources of the body are closed."""

    _error: BaseException | None = None

    def __enter__(self) -> SuccessfulExit:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self._error = error if is_success(error) else None
        return self._error is not None

    def resume(self) -> None:
        """Exits, if the body did."""
        if self._error is not None:
            raise self._error


def at_exit(function: Callable[[BaseException | None], None]) -> None:
    """Calls `function` when this process exits, with the error that Python shows then, or None.

    It may be called twice. This also works in a child process of `multiprocessing`, where older
    releases of Python do not run `atexit`. A child that this process forks does not call it.
    """
    owner = os.getpid()

    def call() -> None:
        if os.getpid() == owner:
            function(_uncaught())

    # Registered after `util` itself, so called before that waits for child processes, which may
    # wait for this one's end.
    atexit.register(call)
    util.Finalize(None, call, exitpriority=100)


def _uncaught() -> BaseException | None:
    """Returns the uncaught exception that ends this process, or None.

    Python stores an exception when it prints its traceback, so this is None after `sys.exit`. In a
    child of `multiprocessing` it is any exception, including `SystemExit`, since the child calls
    its exit functions before it handles the exception.
    """
    # An error in a child of `multiprocessing`, which has not handled it yet.
    in_child = sys.exc_info()[1]
    # In an interactive session an error ends a cell or a line, not the process.
    is_interactive = hasattr(sys, "ps1")
    return in_child or (None if is_interactive else getattr(sys, "last_value", None))
