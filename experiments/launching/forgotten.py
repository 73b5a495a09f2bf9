"""Reports a program that defines an experiment and exits without using it."""

from __future__ import annotations

import atexit
import os
import sys

from compat.errors import UserError
from compat.processes.command import report
from compat.runtime import interface

_unused: list[tuple[str, str]] = []  # Name and file of each unused experiment of the program.


def defined(cls: type) -> None:
    """Notes an experiment that a program defines, to report it if the program never uses it.

    Does nothing in a notebook or an interactive session, which may use the experiment later.
    """
    file = getattr(sys.modules["__main__"], "__file__", None)  # Python deletes it before it exits.
    if cls.__module__ == "__main__" and file is not None and not hasattr(sys, "ps1"):
        if not _unused:
            atexit.register(_report)
        _unused.append((cls.__name__, os.path.basename(file)))


def used() -> None:
    """Notes that the program uses an experiment, so that nothing is reported at its end."""
    _unused.clear()
    atexit.unregister(_report)


def unused() -> bool:
    """Whether the program has defined an experiment, and has done nothing with it."""
    return bool(_unused)


def _report() -> None:
    # The program failed before it could use the experiment, or trains without it, by `compat`.
    if hasattr(sys, "last_value") or interface.selected() is not None:
        return
    name, file = _unused[-1]
    code = report(
        UserError(
            f"{file} defines {name} and does not run it; end the file with run({name}), or use "
            f"python -m experiments {file}"
        )
    )
    sys.stdout.flush()
    os._exit(code)  # Python ignores an exit code that is set while it exits.
