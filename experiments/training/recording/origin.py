"""Records the program and the class of a run's experiment in the log folder, for exports."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from compat.errors import UserError
from compat.tracking.files import write_atomically
from experiments.launching.launcher import this_program

FILE = "program.json"


@dataclass(frozen=True)
class Origin:
    """The place where the class of an experiment is defined."""

    program: str  # The module, or the absolute path of a file; "" for a notebook, which has none.
    experiment: str  # The name of the class.


def of(experiment: type) -> Origin:
    """Returns the place where the class of an experiment is defined."""
    return Origin(_program(experiment), experiment.__name__)


def write(experiment: type, logdir: str) -> None:
    """Writes the origin of a class into a log folder, as `program.json`."""
    text = json.dumps(asdict(of(experiment)))
    write_atomically(os.path.join(logdir, FILE), text + "\n")


def read(logdir: str) -> Origin | None:
    """Returns the origin of a run; None if `program.json` is missing or not valid."""
    try:
        found = json.loads((Path(logdir) / FILE).read_text("utf-8"))
        origin = Origin(found["program"], found["experiment"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return origin if all(isinstance(part, str) for part in vars(origin).values()) else None


def _program(experiment: type) -> str:
    name = experiment.__module__
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__":
        try:
            name = str(this_program())
        except UserError:  # A notebook.
            return ""
    # A module in a package has the same name on all machines; a single file has only its path.
    return name if "." in name or file is None else os.path.abspath(file)
