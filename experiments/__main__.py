"""`python -m experiments`: the programs that come with the package, and files of your own."""

from __future__ import annotations

import ast
import os
import runpy
import sys
from pathlib import Path

from compat.errors import UserError
from compat.processes.command import begin, report
from experiments.export.loading import experiment_of
from experiments.launching import forgotten
from experiments.training.main import run_program

_HERE = Path(__file__).parent


def main() -> int:
    """Runs the program or file that the command line names, or lists all; returns the exit code."""
    try:
        begin()
    except UserError as error:
        return report(error)
    found = [*_HERE.glob("[!_]*.py"), *_HERE.glob("classics/[!_]*.py"), *_HERE.glob("*/predict.py")]
    programs = {path.stem: path for path in found}
    programs.update((path.parent.name, path) for path in _HERE.glob("*/__main__.py"))
    programs = dict(sorted(programs.items()))
    if sys.argv[1:2] and sys.argv[1] in programs:
        sys.argv = sys.argv[1:]
        # Makes the program `__main__`, from which it finds out what to run as tasks of a cluster.
        parts = programs[sys.argv[0]].relative_to(_HERE.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__main__")
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    if sys.argv[1:2] and sys.argv[1].endswith(".py"):
        return _run_file(sys.argv[1])
    lines = ["usage: python -m experiments PROGRAM|FILE.py [--help] [flags]", ""]
    for name, path in programs.items():
        # The file is read, not imported, since the import would define the program's flags.
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        purpose = text.partition("\n")[0]
        lines.append(f"  {name:<16} {purpose}")
    lines += ["", "An experiment of your own is one file: see docs/experiments.md.", ""]
    sys.stdout.write("\n".join(lines))  # In one call, since `| head` closes the pipe early.
    if sys.argv[1:] and not sys.argv[1].startswith("-"):
        sys.stderr.write(
            f"error: program {sys.argv[1]!r} is unknown, expected one of {', '.join(programs)}; "
            "run one as in: python -m experiments mnist\n"
        )
        return 2
    return 0


def _run_file(file: str) -> int:
    """Runs a file as Python does; then its experiment, if the file defines one and does not run it.

    Returns the exit code.
    """
    if not os.path.isfile(file):
        return report(UserError(f"program {file} is not a file; correct the path of the script"))
    whole = sys.argv
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    runpy.run_path(file, run_name="__main__")
    if not forgotten.unused():
        return 0
    forgotten.used()
    sys.argv = whole  # The tasks of a cluster are started with the same arguments.
    try:
        experiment = experiment_of(file)
    except UserError as error:
        return report(error)
    # --help shows the docstring of `__main__`.
    sys.modules["__main__"].__doc__ = sys.modules[experiment.__module__].__doc__
    return run_program(experiment, file)


if __name__ == "__main__":
    sys.exit(main())
