"""Prints the errors of a script: its own with Python's traceback, ours in one line."""

from __future__ import annotations

import builtins
import os
import sys
import traceback
from typing import Any

from compat.errors import PeerError, UserError
from compat.scripts.names.namespace import MissingName

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_RUNPY = ("<frozen runpy>", "<frozen importlib._bootstrap>")


def show(error: BaseException, script: str) -> int:
    """Prints an error that the script did not catch; returns the exit code.

    `script` is shown for an error without a line in the script.
    """
    known = _known(error)
    if known is not None:
        print(f"error: {_place(error, script)}: {known}", file=sys.stderr, flush=True)
        return getattr(known, "exit_code", UserError.exit_code)
    trace = traceback.TracebackException.from_exception(error)
    _without_ours(trace)
    print("".join(trace.format()), end="", file=sys.stderr, flush=True)
    return 1


def _known(error: BaseException | None) -> BaseException | None:
    """Returns the error of ours that is `error` or one of its causes, else None."""
    while error is not None:
        if isinstance(error, (UserError, PeerError, MissingName)):
            return error
        if isinstance(error, ImportError) and str(error).startswith("tf."):
            return error
        error = error.__cause__
    return None


def _place(error: BaseException, script: str) -> str:
    """Returns "file:line" of the script's innermost line."""
    place = script
    for frame, line in traceback.walk_tb(error.__traceback__):
        # The script's code has builtins of its own.
        if "__import__" in frame.f_builtins and frame.f_builtins is not vars(builtins):
            place = f"{frame.f_code.co_filename}:{line}"
    return place


def _without_ours(trace: Any) -> None:
    """Removes the frames of this package, also from the causes of the error."""
    while trace is not None:
        trace.stack[:] = [
            frame
            for frame in trace.stack
            if not frame.filename.startswith(_HERE + os.sep) and frame.filename not in _RUNPY
        ]
        _without_ours(trace.__cause__)
        trace = trace.__context__
