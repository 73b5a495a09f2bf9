"""What the commands of this room share: arguments, a quiet TensorFlow, errors in a line."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import Callable, Iterator

from compat.errors import Parser, UserError, unless_usable
from compat.processes.exit_codes import report
from compat.processes.output import discard
from compat.tracking.files import beside
from experiments.launching.command_line import load_tensorflow


def parser(program: str, document: str | None) -> argparse.ArgumentParser:
    """Returns a parser of LOGDIR, --checkpoint and --program, with the help of a module."""
    made = Parser(
        prog=f"python -m {program}",
        description=document,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("logdir", metavar="LOGDIR", help="log folder of the run")
    made.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        help="default: best, or last where no best one was kept",
    )
    made.add_argument(
        "--program", metavar="FILE", help="defines the experiment; default: as the run recorded it"
    )
    return made


def run(main: Callable[[list[str]], None]) -> None:
    """Runs a command, and exits; what is wrong takes one line."""
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except UserError as error:
        sys.exit(report(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # As of `| head`: Python's exit would flush again, and fail.
        discard(sys.stdout)
        sys.exit(1)


@contextlib.contextmanager
def output(path: str) -> Iterator[Path]:
    """Yields a path beside that of --output, which replaces it when all is written."""
    what = f"--output={path} cannot be written"
    with unless_usable(what, "name another file"), beside(path) as unfinished:
        yield unfinished


def start_tensorflow() -> None:
    """Loads TensorFlow, for the CPU alone: a GPU may be busy with the run."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    load_tensorflow()
