"""`python -m compat COMMAND`: tools for TensorFlow 1.x scripts and checkpoints."""

from __future__ import annotations

import contextlib
import importlib
import sys

from compat.errors import PeerError, Stopped, UserError
from compat.processes import stop_signals
from compat.processes.command import begin, report

# Purpose and module of each command.
_COMMANDS = {
    "run": ("run an unchanged script on the installed TensorFlow", "scripts.commands.run"),
    "check": (
        "list what a script uses that has changed, without running it",
        "scripts.commands.check",
    ),
    "migrate": ("migrate a script to today's release, by rules", "scripts.commands.migrate"),
    "prove": (
        "run a program twice, and report where the two first differ",
        "scripts.commands.prove",
    ),
    "serve": (
        "run a standalone server for clients that connect with grpc://",
        "scripts.commands.serve",
    ),
    "convert-checkpoint": (
        "convert a checkpoint or a graph of an old program for another",
        "checkpoint.converting.command",
    ),
    "lock": ("write the packages of a script as constraints and a container file", "doctor.lock"),
    "doctor": ("show what works in this environment, and how to fix the rest", "doctor"),
}


def main(argv: list[str] | None = None) -> int:
    """Runs a command line, by default that of this process; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: python -m compat COMMAND ...\n")
        for name, (purpose, _) in _COMMANDS.items():
            print(f"  {name:<18} {purpose}")
        print("\npython -m compat COMMAND --help shows the options.")
        return 0 if argv else UserError.exit_code
    try:
        begin()
        if argv[0] not in _COMMANDS:
            raise UserError(
                f"command {argv[0]!r} is unknown, expected one of {', '.join(_COMMANDS)}; "
                "python -m compat --help lists them"
            )
        command = importlib.import_module(f"compat.{_COMMANDS[argv[0]][1]}")
        # A script handles signals as it likes; if it starts a cluster, `run` does.
        with contextlib.nullcontext() if argv[0] == "run" else stop_signals.raised():
            return int(command.main(argv[1:]))
    except (UserError, PeerError, Stopped) as error:
        return report(error)


if __name__ == "__main__":
    sys.exit(main())
