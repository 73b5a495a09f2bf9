"""Runs a program so that its exit code says whether running it again may help."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from typing import Any, Callable

from absl import app, flags

from compat.cluster.liveness import watchdog
from compat.errors import PeerError, Stopped, UserError, one_line
from compat.processes.command import begin, report
from compat.runtime import interface

_LINES = (UserError, PeerError, Stopped)
# What absl says of a value that Python, or itself, cannot convert to the flag's type.
_UNCONVERTED = re.compile(
    r"flag --([^=]+)=(.*): (?:invalid literal|Exceeds|could not convert|\('Non-boolean).*"
)
_KINDS = {"int": "an integer", "float": "a number", "bool": "true or false"}


def run_main(
    main: Callable[[list[str]], Any],
    flags_parser: Callable[[list[str]], list[str]] | None = None,
    described: Callable[[BaseException], str | None] = lambda error: None,
) -> None:
    """Runs a program's `main`, as `tf.app.run` of TensorFlow 1.x, and exits.

    The exit code is what `main` returns, 0 for None; 2 for a `UserError` and 138 for a peer that is
    missing or lost, which take one line on standard error. 138 is also what an error of TensorFlow
    becomes behind which a lost peer stands. Any other error leaves its traceback and gives 1.

    Args:
      main: takes the program's name and the arguments that are not flags of `absl.flags`.
      flags_parser: takes the command line, and returns what `main` takes; `parse_flags` by default.
      described: returns what is shown in place of the traceback of another error, or None.
    """

    def program(argv: list[str]) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # Who waits says so, also into a file.
        tensorflow = logging.getLogger("tensorflow")
        if not (tensorflow.level or flags.FLAGS["verbosity"].present):
            # absl would show its notes, which hold tracebacks of errors that become one line.
            tensorflow.setLevel(logging.ERROR)
        try:
            code = main(argv)
            server = interface.current_server()
            if server is not None:
                server.diagnose(SystemExit(code))  # By which `app.run` ends the process.
            return code
        except BaseException as error:
            server = interface.current_server()
            lost = None if server is None else server.diagnose(error)
            shown = lost or error
            if not isinstance(shown, _LINES):
                text = described(shown) if isinstance(shown, Exception) else None
                if text is None:
                    raise
                print(text, file=sys.stderr, flush=True)
                return 1
            if server is not None and (server.serves or lost or watchdog.is_stuck()):
                server.announce_end()  # For Python's exit, which would, is skipped.
                exit_at_once(shown)
            return report(shown)

    try:
        begin()
    except UserError as error:
        sys.exit(report(error))
    app.run(program, flags_parser=flags_parser or parse_flags)


def exit_at_once(error: BaseException) -> None:
    """Ends the process by an error that takes a line, without taking down what it has.

    For tasks that work for others: a server that was taken down amid an update has been seen to
    pass on a NaN. And for those that lost one: a call that still waits for it may abort Python's
    exit. Returns for other errors.
    """
    if isinstance(error, _LINES):
        exit_code = report(error)
        sys.stdout.flush()
        os._exit(exit_code)


def parse_flags(argv: list[str], values: flags.FlagValues = flags.FLAGS) -> list[str]:
    """Parses the flags; returns the program and the arguments that are no flags.

    Differs from absl in that mistakes take one line, and help is no failure.
    """
    try:
        rest: list[str] = values(argv)
        for name in values:
            text = str(values[name].value)
            if "\0" in text:
                raise flags.IllegalFlagValueError(f"flag --{name} has a NUL in its value")
            if text != text.encode("utf-8", "replace").decode("utf-8"):
                raise flags.IllegalFlagValueError(f"--{name}={text} is not UTF-8")
    except (flags.Error, ValueError) as error:  # The latter of absl's own, and of a --flagfile.
        reason = one_line(" ".join(str(error).split()))
        found = _UNCONVERTED.fullmatch(reason)
        kind = found and _KINDS.get(values[found[1]].parser.flag_type())
        if found and kind:
            reason = f"--{found[1]}={found[2]} is not {kind}"
        print(f"error: {reason}; --help lists the flags", file=sys.stderr, flush=True)
        sys.exit(UserError.exit_code)
    except SystemExit:
        sys.exit(0)
    return rest
