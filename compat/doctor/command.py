"""Runs the command line of `python -m compat doctor` and prints its report."""

from __future__ import annotations

import itertools
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator

from compat.doctor import machine, trials
from compat.doctor.packages import LONGEST_SECS, Finding, Packages
from compat.errors import Parser, UserError
from compat.processes.output import discard


def main(argv: list[str]) -> int:
    """Runs the command line of `doctor`; returns the exit code."""
    parser = Parser(
        prog="python -m compat doctor",
        description="Shows what this environment is, what works in it, and how to fix the rest.",
        epilog="exit code: 0 if all is well, 1 if there is a problem, with the command that fixes "
        "it below, 2 for a wrong command line",
        allow_abbrev=False,
    )
    limit = "limit for each import and each trial (default: 60)"
    parser.add_argument("--deadline", type=int, default=60, metavar="SECONDS", help=limit)
    deadline = parser.parse_args(argv).deadline
    if not 1 <= deadline <= LONGEST_SECS:
        raise UserError(f"--deadline={deadline} is out of range; use 1 to {LONGEST_SECS}")
    # Handled like Ctrl-C, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    try:
        with tempfile.TemporaryDirectory(prefix="compat-doctor-") as folder:
            return int(_print(_sections(Path(folder), deadline)) > 0)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    # `| head` has closed the pipe; without this, Python would flush it again at exit and fail.
    except BrokenPipeError:
        discard(sys.stdout)
        return 128 + signal.SIGPIPE


def _sections(folder: Path, deadline: int) -> Iterator[tuple[str, Iterable[Finding]]]:
    """Yields each section's heading and findings; iterating over the findings runs the checks."""
    packages = Packages()
    yield "packages", packages.findings()
    facts: dict[str, Any] = {}
    yield "imports", trials.imports(packages, folder / "imports", deadline, facts)
    here = list(machine.findings(facts))
    yield "machine", here
    has_ports = not any(finding.remedy for finding in here)
    tried = trials.runtimes(packages, folder / "runtimes", deadline, facts, has_ports)
    yield "runtimes, each tried with 1 ps and 1 worker on this machine", tried


def _print(sections: Iterable[tuple[str, Iterable[Finding]]]) -> int:
    """Prints each finding as soon as it is known; returns the number of problems."""
    problems = 0
    for heading, findings in sections:
        print(heading, flush=True)
        for remedy, group in itertools.groupby(findings, key=lambda finding: finding.remedy):
            for finding in group:
                print(f"{'!' if remedy else ' '} {finding.name:<20} {finding.text}", flush=True)
                problems += bool(remedy)
            if remedy:
                print(f"  fix with: {remedy}", flush=True)
    print({0: "all is well", 1: "1 problem"}.get(problems, f"{problems} problems"), flush=True)
    return problems
