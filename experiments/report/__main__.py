"""Writes a report of runs, side by side: one HTML file, which opens without a network.

python -m experiments.report runs/1
python -m experiments.report runs/low-rate runs/high-rate --output=rates.html
"""

from __future__ import annotations

import argparse
import contextlib
import os

from compat.errors import Parser, UserError
from compat.tracking.files import write_atomically
from experiments.export import command_line
from experiments.report import page, run_folder


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = Parser(
        prog="python -m experiments.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("logdirs", metavar="LOGDIR", nargs="+", help="log folder of a run")
    parser.add_argument(
        "--output", metavar="FILE", default="report.html", help="default: report.html"
    )
    options = parser.parse_args(argv)
    # A folder that is given twice is one run.
    runs = [run_folder.read(logdir) for logdir in dict.fromkeys(map(_named, options.logdirs))]
    _write(options.output, page.page(runs))
    print(f"{options.output}: {', '.join(run.name for run in runs)}")


def _named(logdir: str) -> str:
    return logdir.rstrip("/") or logdir


def _write(path: str, text: str) -> None:
    try:
        write_atomically(path, text)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(path + ".tmp")
        raise UserError(
            f"--output={path} cannot be written ({error.strerror}); name another file"
        ) from error


if __name__ == "__main__":
    command_line.run(main)
