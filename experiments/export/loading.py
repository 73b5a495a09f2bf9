"""Loads the experiment class of a run from the program that its log folder names."""

from __future__ import annotations

import importlib
import inspect
import os
import pwd
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from compat.errors import UserError
from experiments.training.experiment import Experiment
from experiments.training.recording import origin

_MODULE = re.compile(r"\w+(\.\w+)*$")
_NAME = "program_of_the_run"  # Not `__main__`, with which the program would start to train.


def load_experiment(logdir: str, program: str | None = None, trust: bool = False) -> Any:
    """Returns the subclass of `Experiment` of the run in a log folder.

    Args:
      logdir: the log folder.
      program: the file or module that defines the class; None for the one that the folder records.
      trust: whether to run a program that another user has recorded in the log folder.

    Raises:
      UserError: the folder records no program, or belongs to another user who is not trusted; or
        the program has moved, cannot be imported, or does not define the class.
    """
    found = origin.read(logdir)
    if found and not program and not trust:
        _check_owner(logdir, found.program)
    given = program or (found.program if found else "")
    if not given:
        raise UserError(
            f"{logdir} does not record the program of its run; name it with --program=FILE"
        )
    module = _import(given, logdir)
    own = _experiments(module, found.experiment if found else None)
    if len(own) != 1:
        what = f"the class {found.experiment}" if found else "one subclass of Experiment"
        raise UserError(
            f"program {given} does not define {what} of the run in {logdir}; name the file that "
            "does with --program=FILE"
        )
    return own[0]


def _check_owner(logdir: str, program: str) -> None:
    """Raises a `UserError` if another user, except root, owns the log folder or its program.json.

    That file names a program, which would run with the permissions of the current user.
    """
    owners = {os.stat(logdir).st_uid, os.lstat(os.path.join(logdir, origin.FILE)).st_uid}
    others = owners - {0, os.geteuid()}
    if others:
        raise UserError(
            f"{logdir} belongs to another user ({', '.join(map(_user, others))}), and the program "
            f"that it records, {program}, would run with your rights; if you trust that user add "
            "--trust, or name a program of your own with --program=FILE"
        )


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def experiment_of(program: str) -> Any:
    """Returns the one subclass of `Experiment` that a program, a file or module, defines."""
    own = _experiments(_import(program))
    if len(own) != 1:
        raise UserError(
            f"program {program} defines {len(own)} subclasses of Experiment, expected one; name "
            "a program such as experiments.mnist"
        )
    return own[0]


def _experiments(module: Any, name: str | None = None) -> list[Any]:
    """Returns the experiment classes in a module: those called `name`, or all its own."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Experiment)
        and value is not Experiment
        and (value.__name__ == name if name else value.__module__ == module.__name__)
    ]


def _import(program: str, logdir: str | None = None) -> Any:
    """Imports a program, a file or a module, without running its `if __name__ == "__main__":`.

    If the program is that of the run in a log folder, errors name the folder.
    """
    whose, remedy = "", "name a Python script, or a module such as experiments.mnist"
    if logdir is not None:
        whose = f" of the run in {logdir}"
        remedy = "name the file with --program=FILE if it has moved"
    path = Path(program)
    try:
        is_file = "\0" not in program and os.path.isfile(program)
        if not is_file and path.suffix != ".py" and _MODULE.match(program):
            return importlib.import_module(program)
        if not is_file:
            raise UserError(f"program {program}{whose} is not a file; {remedy}")
        sys.path.insert(0, str(path.resolve().parent))  # As Python does for a script.
        loader = SourceFileLoader(_NAME, str(path))
        module = ModuleType(_NAME)
        module.__file__ = str(path)
        sys.modules[_NAME] = module  # Where dataclasses look for the names in their annotations.
        loader.exec_module(module)
    except (ImportError, SyntaxError) as error:
        raise UserError(
            f"program {program}{whose} cannot be imported ({error}); install what it needs, or "
            f"{remedy if logdir is None else 'name another with --program=FILE'}"
        ) from error
    except SystemExit:
        raise UserError(
            f"program {program} runs when it is imported; call run() under "
            "`if __name__ == '__main__':`"
        ) from None
    return module
