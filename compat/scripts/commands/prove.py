"""`python -m compat prove`: runs a program twice from the same values and batches, and compares.

The first run is A, the second is B. B starts from the initial variables of A, and uses the batches
and random numbers of A. The losses of all training calls are compared. For the first call whose
losses differ, the variables, gradients and operations are compared as well, to find the cause.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
from typing import Iterator

from compat.errors import Parser, UserError, reason_of
from compat.scripts.proving import comparison, operations, report, runs, sides

_USAGE = "python -m compat prove [--a=WHAT] [--b=WHAT] [options] SCRIPT [arguments of the script]"
_EPILOG = "exit code: 0 if the two are equal, 1 if they differ, 2 if one could not be run"
_WHAT = (
    "`run` (compat run SCRIPT), `migrated`, a program, or a Python or constraints file for its "
    "TensorFlow"
)


def main(argv: list[str]) -> int:
    """Runs the command line of `prove`; returns the exit code."""
    options = _parser().parse_args(argv)
    if not options.script:
        raise UserError(f"no script was given; usage: {_USAGE}")
    script, *arguments = options.script
    if not os.path.isfile(script):
        raise UserError(f"script {script} is no file; name a Python script")
    if options.steps < 1:
        raise UserError(f"--steps={options.steps} is too small, expected 1 or more")
    with _folder(options.keep) as folder:
        pair = [
            sides.side(name, description, script, folder)
            for name, description in (("A", options.a), ("B", options.b))
        ]
        proof = _prove(pair, arguments, folder, options)
        for line in report.lines(proof):
            print(line, flush=True)
        if options.json:
            _write(options.json, report.as_json(proof))
        if options.html:
            _write(options.html, report.as_page(proof))
        return int(bool(proof.comparison.verdict))


def _prove(
    pair: list[sides.Side], arguments: list[str], folder: str, options: argparse.Namespace
) -> report.Proof:
    begun = runs.now()
    gathers = any(side.gathers for side in pair)

    def run_both(
        name: str, steps: int, details: int, replayed: runs.Run | None, every: bool = False
    ) -> tuple[runs.Run, runs.Run]:
        done = replayed
        both: list[runs.Run] = []
        for side in pair:
            if side.name == "B" and done is None:
                done = both[0]
                steps = len(done.calls) if done.is_cut else steps
            both.append(
                runs.run(
                    side,
                    arguments,
                    os.path.join(folder, name + side.name),
                    replay=done,
                    steps=steps,
                    details=[details],
                    every=every,
                    each=options.each,
                    gathers=gathers,
                    begun=begun,
                    timeout=options.timeout,
                )
            )
            if side.name == "A":
                if not (both[0].calls or both[0].ended or every):
                    return run_both("every", steps, details, replayed, True)
                _check(both[0])
        return both[0], both[1]

    a, b = run_both("", options.steps, 1, None)
    result = comparison.compare(a, b, options.rtol, options.each)
    traced = None
    # The operations of calls that are gathered are not recorded.
    cause = 0 if gathers else result.cause
    if cause == 1:
        traced = operations.trace(a, b, 1)
    elif cause:
        again = run_both("again", cause, cause, a, a.trains_nothing)
        traced = operations.trace(*again, cause)
    return report.Proof(a, b, result, traced, options.rtol, options.each)


def _check(a: runs.Run) -> None:
    """Raises a UserError if A failed, or has no training call with which to compare B."""
    side = f"A, {a.side.says},"
    if not a.calls and a.ended:
        raise UserError(
            f"{side} ended with code {a.ended} before its first training call: {a.last_line()}"
        )
    if not a.calls:
        raise UserError(
            f"{side} has no training call: no call of a session that updates a trainable variable, "
            "or at least fetches a number; prove compares programs that train by sessions"
        )
    if (a.ended is None or a.ended) and not a.is_cut:
        raise UserError(f"{side} failed after {len(a.calls)} training calls: {a.last_line()}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m compat prove",
        usage=_USAGE,
        description=__doc__,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--a", metavar="WHAT", default="run", help=f"the first run: {_WHAT} (default: run)")
    add("--b", metavar="WHAT", default="migrated", help="the second run (default: migrated)")
    add("--steps", type=int, default=100, help="training calls to compare (default: 100)")
    add(
        "--rtol",
        type=float,
        default=comparison.RTOL,
        help="relative tolerance of losses (default: 1e-4)",
    )
    add(
        "--each",
        action="store_true",
        help="begin each training call of B with the variables of A, for training that amplifies "
        "rounding",
    )
    add("--timeout", type=float, default=600.0, help="seconds for each run (default: 600)")
    add("--json", metavar="FILE", help="write the result as JSON")
    add("--html", metavar="FILE", help="write the result as a page")
    add("--keep", metavar="FOLDER", help="keep what the runs recorded, in a new folder")
    add("script", nargs=argparse.REMAINDER, help="an old script")
    return parser


@contextlib.contextmanager
def _folder(kept: str | None) -> Iterator[str]:
    if kept is not None:
        try:
            os.makedirs(kept)
        except OSError as error:
            raise UserError(
                f"--keep={kept} cannot be made ({reason_of(error)}); name a new folder"
            ) from None
        yield kept
        return
    folder = tempfile.mkdtemp(prefix="compat-prove-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(path: str, text: str) -> None:
    try:
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".tmp", path)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({reason_of(error)}); name another") from None
