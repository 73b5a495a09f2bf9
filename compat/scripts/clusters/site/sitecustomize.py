"""Makes a Python process that a script starts run under `python -m compat run`."""

from __future__ import annotations

import json
import os
import sys


def _command_line() -> list[str] | None:
    """Returns the command line after the interpreter, or None if it is unknown."""
    if hasattr(sys, "orig_argv"):
        return sys.orig_argv[1:]
    try:
        with open("/proc/self/cmdline", "rb") as words:
            return [word.decode() for word in words.read().split(b"\0")[1:-1]]
    except OSError:
        return None


def _begin() -> None:
    options = os.environ.get("COMPAT_RUN_OPTIONS")
    words = _command_line()
    if os.environ.pop("COMPAT_RUN_INSIDE", None) or options is None or not words:
        return
    if words[0] == "-m" and words[1].partition(".")[0] in ("compat", "experiments"):
        return
    if words[0] in ("-V", "--version", "-h", "--help"):
        return
    os.environ["COMPAT_RUN_INSIDE"] = "1"
    command = [sys.executable, "-m", "compat", "run", *json.loads(options), *words]
    os.execv(sys.executable, command)  # noqa: S606 - Without a shell, as it should be.


_begin()
