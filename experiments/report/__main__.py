"""Writes a report of runs, side by side: one HTML file, which opens without a network.

python -m experiments.report runs/1
python -m experiments.report runs/low-rate runs/high-rate --output=rates.html
"""

from __future__ import annotations

import argparse
import sys

from compat.errors import Parser
from compat.processes.command import run as run_command
from experiments.export import commands
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
    folders = dict.fromkeys(logdir.rstrip("/") or logdir for logdir in options.logdirs)
    runs = [run_folder.read(logdir) for logdir in folders]
    with commands.output(options.output) as unfinished:
        unfinished.write_text(page.page(runs), encoding="utf-8")
    print(f"{options.output}: {', '.join(run.name for run in runs)}")


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))
