"""The program that `launch` starts: its command line, and the arguments that name its task."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import sys
from typing import Iterable, Sequence

from compat.errors import UserError
from compat.processes.forking import ForkServer, read_early
from compat.scripts.clusters import forkable, tasks
from compat.scripts.clusters.task_arguments import Spelling, by_flags
from compat.scripts.commands import run
from compat.scripts.reading import conversion
from experiments.launching.command_line import log_level
from experiments.launching.launcher import loading

CHOICES = ("auto", "none", "hosts")
_JOBS = ("chief", "ps", "worker")
_OWN_COMMANDS = ("compat", "experiments")
_OPTIONS_WITH_VALUE = ("-W", "-X")  # Python's options that are followed by a value.
_RUN = ["-m", "compat", "run"]
# TensorFlow's own defaults, for programs that do not import this package, which sets others.
_DEFAULTS = {"GRPC_FAIL_FAST": "false", "TF_CPP_MIN_LOG_LEVEL": "0"}


def command(words: Sequence[str]) -> list[str]:
    """Returns the command line of a program; scripts, `-m MODULE` and `python` use this Python.

    Raises a `UserError` if there is no program, or it is not found.
    """
    if not words:
        raise UserError("no program was given; name it after --, as in -- python train.py")
    first, rest = words[0], list(words[1:])
    if first == "-m" or first in _OWN_COMMANDS:
        return [sys.executable, "-m", *([] if first == "-m" else [first]), *rest]
    if first in ("python", "python3"):
        return [sys.executable, *rest]
    if first.endswith(".py"):
        if not os.path.isfile(first):
            raise UserError(f"program {first!r} is not a file; correct the path of the script")
        return [sys.executable, first, *rest]
    if shutil.which(first) is None:
        raise UserError(f"program {first!r} was not found; give its path, or one that is on PATH")
    return [first, *rest]


def task_arguments(choice: str, argv: Sequence[str], jobs: Iterable[str]) -> Spelling:
    """Returns the arguments that each task gets, in addition to TF_CONFIG in its environment.

    Args:
      choice: one of `CHOICES`, or the arguments themselves, with {job}, {index} and so on.
      argv: the command line of the program.
      jobs: the jobs that the cluster has.

    Raises:
      UserError: the choice is neither.
    """
    found: Sequence[str] = ()
    if "{" in choice:
        found = choice.split()
    elif choice == "hosts":
        found = [
            "--job_name={job}",
            "--task_index={index}",
            *(f"--{j}_hosts={{{j}}}" for j in jobs),
        ]
    elif choice == "auto":
        found = _by_source(argv)
    elif choice != "none":
        raise UserError(
            f"--flags={choice} is unknown; use {', '.join(CHOICES)}, or write the arguments, as in "
            "--flags='--job={job} --id={index}'"
        )
    missing = [f"{{{job}}}" for job in _JOBS if job not in jobs and "{" not in choice]
    return Spelling([w for w in found if not w.endswith(tuple(missing))], tf_config=True)


def forking(argv: Sequence[str]) -> tuple[dict[str, str], ForkServer | None]:
    """Returns variables to add to a command's environment, and the process that forks its tasks.

    The process is None if each task has to be started anew; see
    `compat.scripts.clusters.forkable`.
    """
    path, _ = _source(argv)
    found = None if path is None else forkable.survey(path)
    if found is None:
        return {}, None
    if list(argv[1:4]) == _RUN:
        return {**tasks.log_level(), **found.env}, ForkServer()
    if "experiments" in found.imports:
        return {**log_level(), **found.env}, loading()
    defaults = {} if "compat" in found.imports else {**_DEFAULTS, **read_early(os.environ)}
    return {**defaults, **found.env}, ForkServer()


def _by_source(argv: Sequence[str]) -> Sequence[str]:
    """Returns arguments such as --job_name={job}, if the program defines such flags; else ()."""
    path, given = _source(argv)
    if path is None:
        return ()
    try:
        trees = [part.tree() for part in conversion.read(path)]
    except (SyntaxError, UserError):
        return ()  # The program itself reports it.
    found = by_flags(trees, given)
    return () if found is None else found.arguments


def _source(argv: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Returns the Python file that a command runs, or None, and the file's arguments."""
    if not os.path.basename(argv[0]).startswith("python"):
        return None, ()
    words = list(argv[1:])
    while words and words[0].startswith("-") and words[0] != "-m":
        words = words[2:] if words[0] in _OPTIONS_WITH_VALUE else words[1:]
    if words[:3] == _RUN:
        options = run.parser().parse_args(words[3:])
        if options.cluster:
            raise UserError(
                f"--cluster={options.cluster} of `compat run` starts a cluster of its own; leave "
                "it out, or start that command without this launcher"
            )
        kind, target, given = run.program(options)
        words = [target, *given] if kind == "script" else ["-m", target, *given]
    if words[:1] == ["-m"]:
        return _module_file(words[1] if words[1:] else ""), words[2:]
    return (words[0], words[1:]) if words and os.path.isfile(words[0]) else (None, ())


def _module_file(name: str) -> str | None:
    """Returns the file that `python -m` runs, without an import, which might load TensorFlow."""
    top, *parts = name.split(".")
    try:
        spec = importlib.machinery.PathFinder.find_spec(top, [os.getcwd(), *sys.path[1:]])
        spec = spec or importlib.util.find_spec(top)
        for part in [*parts, "__main__"]:
            if spec is None or spec.submodule_search_locations is None:
                break
            path = list(spec.submodule_search_locations)
            spec = importlib.machinery.PathFinder.find_spec(f"{spec.name}.{part}", path)
    except (ImportError, ValueError):
        return None
    return None if spec is None or not (spec.origin or "").endswith(".py") else spec.origin
