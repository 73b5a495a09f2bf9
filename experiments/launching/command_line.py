"""How every program here begins: flags in, one line for what is wrong, an exit code out.

Example:
  >>> flags.DEFINE_integer("n", 4, "The power.")
  >>> if __name__ == "__main__":
  ...     command_line.run(main)  # main(values: flags.FlagValues) -> int
"""

from __future__ import annotations

import io
import os
import sys
from typing import Callable

from absl import app, flags, logging

from compat.errors import PeerError, UserError, one_line
from experiments.launching import signals
from experiments.settings.flags import help_text

_HELP = ("--help", "-help", "--helpshort", "-helpshort", "-h", "-?")


def run(main: Callable[[flags.FlagValues], int]) -> None:
    """Runs a program with the flags of its command line, and exits with what it returns.

    A `UserError` or `PeerError` takes one line on standard error, and gives its exit code.
    """

    def program(argv: list[str]) -> int:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # Who waits says so, also into a file.
        try:
            if len(argv) > 1:
                raise UserError(f"argument {argv[1]!r} is not a flag; flags look like --name=value")
            return main(flags.FLAGS)
        except (UserError, PeerError, signals.Stopped) as error:
            return told(error)

    app.run(program, flags_parser=parse)


def told(error: UserError | PeerError | signals.Stopped) -> int:
    """Prints an error's line, of a stop only if it has lost something; returns the exit code."""
    if not isinstance(error, signals.Stopped) or error.loses:
        print(f"error: {error}", file=sys.stderr, flush=True)
    return error.exit_code


def end_at_once(error: BaseException) -> None:
    """Ends the process by an error that takes a line, without taking down what it has.

    For tasks that work for others: TensorFlow's server, taken down amid an update, has been seen to
    hand on what is no number any more, which ended the training. A killed one does not. And for
    those that lost one: a call that still waits for it, and returns while Python ends, has been
    seen to abort the process, which then had not the exit code that it should have.
    """
    if isinstance(error, (UserError, PeerError, signals.Stopped)):
        exit_code = told(error)
        sys.stdout.flush()
        os._exit(exit_code)


def parse(argv: list[str], values: flags.FlagValues = flags.FLAGS) -> list[str]:
    """Parses the flags; differs from absl in that mistakes take one line, and help is no failure.

    Args:
      argv: the program and its arguments.
      values: takes the flags.

    Returns:
      The program and the arguments that are no flags.

    Raises:
      SystemExit: a flag is unknown or malformed, or help was asked for and given.
    """
    if any(word in _HELP for word in argv[1:]):
        text = help_text(values)
        if text:
            _print_help(text)
            sys.exit(0)
    try:
        rest: list[str] = values(argv)
        for name in values:
            if "\0" in str(values[name].value):
                raise flags.IllegalFlagValueError(f"flag --{name} has a NUL in its value")
    except (flags.Error, UnicodeDecodeError) as error:  # The latter of a --flagfile.
        reason = one_line(" ".join(str(error).split()))
        print(f"error: {reason}; --help lists the flags", file=sys.stderr, flush=True)
        sys.exit(UserError.exit_code)
    except (SystemExit, BrokenPipeError):
        _close_broken_output()
        sys.exit(0)
    return rest


def _print_help(text: str) -> None:
    document = (sys.modules["__main__"].__doc__ or "").strip()
    try:
        print(f"{document}\n\nflags:\n\n{text}", flush=True)
    except BrokenPipeError:  # As of `--help | head`.
        _close_broken_output()


def _close_broken_output() -> None:
    """Lets Python end without a traceback where its reader has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def quiet_tensorflow() -> None:
    """Limits TensorFlow's log to errors; called before it is loaded."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.set_verbosity(logging.ERROR)
