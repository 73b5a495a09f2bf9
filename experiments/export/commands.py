"""The command-line arguments, output files and start of TensorFlow for all `export` commands."""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path
from typing import Any, ContextManager, Iterator

from compat.errors import Parser, unless_usable
from compat.tracking.files import beside
from experiments.launching.command_line import load_tensorflow


def parser(program: str, document: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the arguments that name a model, such as LOGDIR and --checkpoint.

    Args:
      program: the name of the command's module.
      document: the docstring of that module, as the description in --help.
    """
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
    made.add_argument(
        "--trust",
        action="store_true",
        help="run the program that LOGDIR records, though LOGDIR belongs to another user",
    )
    return made


def opened(options: argparse.Namespace) -> ContextManager[Any]:
    """Opens the model that the arguments name; returns the context manager of `open_model`."""
    from experiments.export.model import open_model  # It loads TensorFlow.

    return open_model(options.logdir, options.checkpoint, options.program, options.trust)


@contextlib.contextmanager
def output(path: str) -> Iterator[Path]:
    """Yields a temporary path; the file that is written there replaces `path` at the end."""
    what = f"--output={path} cannot be written"
    with unless_usable(what, "name another file"), beside(path) as unfinished:
        yield unfinished


def start_tensorflow() -> None:
    """Loads TensorFlow, for the CPU alone: a GPU may be busy with the run."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    load_tensorflow()
