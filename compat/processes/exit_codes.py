"""Runs a program with an exit code by which cluster managers decide whether to retry."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from typing import Any, Callable

from absl import app, flags

from compat.checkpoint import folder_lock
from compat.cluster.liveness import watchdog
from compat.errors import PeerError, Stopped, UserError, one_line
from compat.processes.command import begin, report
from compat.runtime import interface

_LINES = (UserError, PeerError, Stopped)
# absl's messages for a value that cannot be converted to the flag's type.
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

    The exit code is the return value of `main`, 0 for None. It is 2 for a `UserError` and 138 for a
    peer that is missing or lost, which are reported in one line on standard error. It is also 138
    for an error of TensorFlow that a lost peer has caused. Any other error prints its traceback,
    and the exit code is 1.

    Args:
      main: Takes the program's name and the arguments that are not flags of `absl.flags`.
      flags_parser: Takes the command line, and returns the argument of `main`; by default
        `parse_flags`.
      described: Returns the text to print in place of an error's traceback, or None.
    """

    def program(argv: list[str]) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Files receive lines about waiting at once.
            sys.stdout.reconfigure(line_buffering=True)
        tensorflow = logging.getLogger("tensorflow")
        if not (tensorflow.level or flags.FLAGS["verbosity"].present):
            # absl would log tracebacks of errors that are reported in one line here.
            tensorflow.setLevel(logging.ERROR)
        try:
            code = main(argv)
            server = interface.current_server()
            if server is not None:
                server.diagnose(SystemExit(code))  # The exception by which `app.run` exits.
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
                server.announce_end()  # Python's exit handlers are skipped.
                exit_at_once(shown)
            return report(shown)

    try:
        begin()
    except UserError as error:
        sys.exit(report(error))
    app.run(program, flags_parser=flags_parser or parse_flags)


def exit_at_once(error: BaseException) -> None:
    """Reports a `UserError` or `PeerError` and exits without destructors; else returns.

    A server that was destroyed during an update has been seen to send a NaN to other tasks. And a
    call that still waits for a lost task may abort Python's exit. Log folders are released first,
    which removes an empty one that this process has created.
    """
    if isinstance(error, _LINES):
        exit_code = report(error)
        sys.stdout.flush()
        folder_lock.release_all()
        os._exit(exit_code)


def parse_flags(argv: list[str], values: flags.FlagValues = flags.FLAGS) -> list[str]:
    """Parses the flags; returns the program's name and the arguments that are not flags.

    Unlike absl, it reports errors in one line, and `--help` exits with 0.
    """
    try:
        rest: list[str] = values(argv)
        for name in values:
            text = str(values[name].value)
            if "\0" in text:
                raise flags.IllegalFlagValueError(f"flag --{name} has a NUL in its value")
            if text != text.encode("utf-8", "replace").decode("utf-8"):
                raise flags.IllegalFlagValueError(f"--{name}={text} is not UTF-8")
    except (flags.Error, ValueError) as error:  # absl raises ValueError for a --flagfile.
        reason = one_line(" ".join(str(error).split()))
        match = _UNCONVERTED.fullmatch(reason)
        kind = match and _KINDS.get(values[match[1]].parser.flag_type())
        if match and kind:
            reason = f"--{match[1]}={match[2]} is not {kind}"
        print(f"error: {reason}; --help lists the flags", file=sys.stderr, flush=True)
        sys.exit(UserError.exit_code)
    except SystemExit:
        sys.exit(0)
    return rest
