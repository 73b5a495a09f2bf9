"""Reports a wrong class of settings in one line, though its error is raised before `run` starts."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from compat.errors import UserError
from compat.processes.command import report


def show_in_one_line(cls: type) -> None:
    """Makes the program that defines a class of settings exit with one line if the class is wrong.

    Python evaluates the class before the program calls anything, so an error in it reaches only
    `sys.excepthook`. An interactive Python still shows its traceback.
    """
    is_program = cls.__module__ == "__main__" and not hasattr(sys, "ps1")
    if is_program and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    shown = error if isinstance(error, UserError) else _explained(error, trace)
    if shown is None:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.exit(report(shown))


def _explained(error: BaseException, trace: Any) -> UserError | None:
    """Returns the error to report for a settings class that is not frozen, else None."""
    if "non-frozen dataclass from a frozen one" not in str(error):
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    cls = trace.tb_frame.f_locals.get("cls")
    return UserError(
        f"{getattr(cls, '__qualname__', 'Settings')} is not frozen; write @dataclass(frozen=True) "
        "above the class"
    )
