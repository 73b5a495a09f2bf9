"""Runs a command: opens its streams, handles signals, and reports errors in one line."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Callable, NoReturn

from compat.errors import PeerError, Stopped, UserError
from compat.processes import stop_signals
from compat.processes.output import discard, open_streams


def run(main: Callable[[], Any]) -> NoReturn:
    """Runs a command, and exits with its return value, 0 for None, or with the code of an error.

    A signal that requests a stop raises `Stopped` in the command, so that it ends its children and
    removes its temporary files.
    """
    try:
        begin()
        with stop_signals.raised():
            code = main()
            sys.stdout.flush()
    except (UserError, PeerError, Stopped) as error:
        code = report(error)
    except KeyboardInterrupt:
        code = 130
    # The reader, such as `head`, has exited. Python would flush again at exit, and fail.
    except BrokenPipeError:
        discard(sys.stdout)
        code = 1
    sys.exit(code)


def begin() -> None:
    """Prepares this process for a command; see `open_streams`.

    Raises:
      UserError: The working directory was deleted.
    """
    open_streams()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UserError(
            "the working directory was deleted, and relative paths mean nothing; cd to another"
        ) from None


def report(error: BaseException) -> int:
    """Prints an error in one line, a `Stopped` only if it lost data; returns the exit code."""
    if not isinstance(error, Stopped) or error.loses:
        with contextlib.suppress(OSError):  # The terminal may have been closed.
            print(f"error: {error}", file=sys.stderr, flush=True)
    return int(getattr(error, "exit_code", 1))
