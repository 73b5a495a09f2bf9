"""`python -m compat COMMAND`: programs of 2016, and what they left, on today's TensorFlow."""

from __future__ import annotations

import importlib
import sys

from compat.errors import PeerError, UserError

# What each command is for, and the module that does it.
_COMMANDS = {
    "run": ("run a script as it is, on the installed TensorFlow", "scripts.run"),
    "check": ("say what a script uses that has changed, without running it", "scripts.check"),
    "serve": ("be a standalone server for clients that connect with grpc://", "scripts.serve"),
    "convert-checkpoint": (
        "bring the checkpoint of an old program over to another",
        "scripts.convert_checkpoint",
    ),
    "doctor": ("say what works in this environment, and what mends the rest", "doctor"),
}


def main(argv: list[str]) -> int:
    """Runs a command line; returns the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: python -m compat COMMAND ...\n")
        for name, (purpose, _) in _COMMANDS.items():
            print(f"  {name:<18} {purpose}")
        print("\npython -m compat COMMAND --help says more.")
        return 0 if argv else UserError.exit_code
    try:
        if argv[0] not in _COMMANDS:
            raise UserError(
                f"command {argv[0]!r} is unknown, expected one of {', '.join(_COMMANDS)}; "
                "python -m compat --help lists them"
            )
        command = importlib.import_module(f"compat.{_COMMANDS[argv[0]][1]}")
        return int(command.main(argv[1:]))
    except (UserError, PeerError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
