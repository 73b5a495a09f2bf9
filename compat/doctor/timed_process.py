"""Runs a Python process with a deadline and reports why it failed."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

import compat

_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(compat.__file__)))
# The line of a traceback with the error, which need not be the last line.
_ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt)(: .*)?$")
_MOST_LETTERS = 200
_LATE = "no end after"

LONGEST_SECS = 24 * 60 * 60


class Attempt:
    """A process `python WORDS` in a new folder; a context manager that kills it on exit.

    It is killed after `deadline` seconds as well. `env` is added to this process's environment.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        deadline: int,
        env: Mapping[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        folder.mkdir(parents=True)
        self._said, self._complaints = folder / "stdout", folder / "stderr"
        self._deadline = deadline
        kept = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        kept.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow's log lines are not reasons.
        paths = filter(None, [kept.get("PYTHONPATH"), _PACKAGES])  # Importable from any folder.
        kept.update(PYTHONPATH=os.pathsep.join(paths), PYTHONUNBUFFERED="1")
        with open(self._said, "wb") as stdout, open(self._complaints, "wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**kept, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                # The kernel enforces the deadline if this process is killed: exec keeps alarms.
                preexec_fn=functools.partial(signal.alarm, deadline),
            )

    def wait(self) -> str:
        """Waits for the process to exit; returns its `failure`, "" after success."""
        self._process.wait()
        return self.failure() or ""

    def failure(self) -> str | None:
        """Returns why the process failed, in one ASCII line; "" after success, None before."""
        code = self._process.poll()
        if not code:
            return None if code is None else ""
        if code == -signal.SIGALRM:
            last = ([""] + _lines(self._said))[-1]
            reason = f"{_LATE} {self._deadline} s" + (f"; said {last!r}" if last else "")
        elif code < 0:
            reason = f"ended by {signal.Signals(-code).name}"
        else:
            lines = _lines(self._complaints)
            errors = [line for line in lines if _ERROR.match(line)]
            reason = (errors or lines or [f"exit code {code}"])[-1]
        return reason.encode("ascii", "backslashreplace").decode("ascii")[:_MOST_LETTERS]

    def result(self) -> str:
        """Returns the last line of its output."""
        return _lines(self._said)[-1]

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._process.kill()  # Without effect after `wait`.
        self._process.wait()


def is_late(failure: str) -> bool:
    """Whether a `failure` is a missed deadline, which a slow machine may cause."""
    return re.match(rf"(\w+: )?{_LATE} [0-9]+ s", failure) is not None


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
