"""The command line of `python -m compat doctor`, and its page."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Tuple

from compat.doctor import loading, machine, trial
from compat.doctor.attempt import LONGEST_SECS
from compat.doctor.finding import Finding
from compat.doctor.packages import Packages
from compat.errors import Parser, UserError

Section = Tuple[str, Iterable[Finding]]

_EPILOG = (
    "exit code: 0 if all is well, 1 if there is a problem, below which stands the command that "
    "mends it, 2 for a wrong command line"
)


def main(argv: list[str]) -> int:
    """Runs the command line of `doctor`; returns the exit code."""
    options = _parser().parse_args(argv)
    if not 1 <= options.deadline <= LONGEST_SECS:
        raise UserError(f"--deadline={options.deadline} is out of range; use 1 to {LONGEST_SECS}")
    # As Ctrl-C, so that nothing is left behind.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    try:
        with tempfile.TemporaryDirectory(prefix="compat-doctor-") as folder:
            return int(_print(_sections(Path(folder), options.deadline)) > 0)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # `| head` has seen enough; Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m compat doctor",
        description="Says what this environment is, what works in it, and what mends the rest.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--deadline",
        type=int,
        default=60,
        metavar="SECONDS",
        help="what each import and each trial may take (default: 60)",
    )
    return parser


def _sections(folder: Path, deadline: int) -> Iterator[Section]:
    """Yields the sections of the page; each is looked at when its findings are asked for."""
    packages = Packages()
    yield "packages", packages.findings()
    facts: dict[str, Any] = {}
    yield "imports", loading.findings(packages, folder / "imports", deadline, facts)
    here = list(machine.findings(facts))
    yield "machine", here
    has_ports = not any(finding.mend for finding in here)
    trials = trial.findings(packages, folder / "runtimes", deadline, facts, has_ports)
    yield "runtimes, each tried with 1 ps and 1 worker on this machine", trials


def _print(sections: Iterable[Section]) -> int:
    """Prints each line as soon as it is known; returns the number of problems."""
    problems = 0
    for heading, findings in sections:
        print(heading, flush=True)
        for mend, group in itertools.groupby(findings, key=lambda finding: finding.mend):
            for finding in group:
                print(f"{'!' if mend else ' '} {finding.name:<20} {finding.text}", flush=True)
                problems += bool(mend)
            if mend:
                print(f"  mend with: {mend}", flush=True)
    print({0: "all is well", 1: "1 problem"}.get(problems, f"{problems} problems"), flush=True)
    return problems
