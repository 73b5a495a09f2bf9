"""Runs programs: parses their flags, reports an error in one line, and exits with a code."""

from __future__ import annotations

import os
import sys
from typing import Callable

from absl import flags, logging

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.processes.command import report
from compat.processes.exit_codes import parse_flags, run_main
from compat.processes.output import discard
from experiments.launching import own_frames
from experiments.settings.flags import help_text

# Flags of absl with which a program would exit with code 0 and train nothing; in a terminal,
# --run_with_pdb debugs it.
_IDLE = {
    "only_check_args": "give --print_config, which checks and shows the settings, or leave it out",
    "run_with_pdb": "run it in a terminal, or leave it out",
}
_ALL = {"--help=all", "-help=all"}
_HELP = {"--help", "-help", "--helpshort", "-helpshort", "-h", "-?", *_ALL}


def run(main: Callable[[flags.FlagValues], int], file: str | None = None) -> None:
    """Runs a program with the flags of its command line, and exits; see `compat.run_main`.

    `file` is given for `python -m experiments FILE`, whose first argument is not a flag.
    """

    def program(argv: list[str]) -> int:
        rest = argv[1:] if file is None else argv[2:]
        if rest:
            raise UserError(f"argument {rest[0]!r} is not a flag; flags look like --name=value")
        return main(flags.FLAGS)

    run_main(program, flags_parser=parse, described=_described)


def _described(error: BaseException) -> str | None:
    """Returns the lines to print for an error; None to print its traceback, as --traceback asks."""
    values = flags.FLAGS
    is_short = "traceback" in values and not values["traceback"].value
    return own_frames.described(error) if is_short else None


def parse(argv: list[str], values: flags.FlagValues = flags.FLAGS) -> list[str]:
    """Parses the flags as `compat.run_main` does, but prints help in the groups of the settings."""
    try:
        asked = set(argv[1:])
        text = help_text(values, bool(_ALL & asked)) if _HELP & asked else ""
        if text:
            document = (sys.modules["__main__"].__doc__ or "").strip()
            print(f"{document}\n\nflags:\n\n{text}".lstrip(), flush=True)
            sys.exit(0)
        rest = parse_flags(argv, values)
        for name, remedy in _IDLE.items():
            debugs = name == "run_with_pdb" and sys.stdin.isatty()
            if name in values and values[name].value and not debugs:
                raise UserError(f"--{name} of absl would train nothing here; {remedy}")
        _check_profile(values)
        return rest
    except UserError as error:
        sys.exit(report(error))
    except (SystemExit, BrokenPipeError) as error:
        try:
            sys.stdout.flush()
        except BrokenPipeError:  # As by `--help | head`: Python's exit would flush again, and fail.
            discard(sys.stdout)
        sys.exit(getattr(error, "code", 0))


def _check_profile(values: flags.FlagValues) -> None:
    """Raises a `UserError` if absl could not write its --profile_file at the end of the run."""
    path = values.profile_file if "profile_file" in values else None
    if path and not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise UserError(
            f"--profile_file={path} cannot be written; name a file in a folder there is"
        )


def log_level() -> dict[str, str]:
    """Returns the variable that limits TensorFlow's log, by default to fatal errors.

    The user may set another value. TensorFlow reads the variable when it is loaded, which for a
    forked task is before the task begins.
    """
    return {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3")}


def quiet_tensorflow() -> None:
    """Limits TensorFlow's log to errors; must be called before TensorFlow is loaded."""
    os.environ.update(log_level())
    logging.set_verbosity(logging.ERROR)


def load_tensorflow() -> None:
    """Loads TensorFlow with a log of errors only."""
    quiet_tensorflow()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
