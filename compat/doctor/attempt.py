"""A Python process that is tried: it ends within its deadline, and says why it failed."""

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
# The line of a traceback that says what it was, which need not be the last one.
_ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt)(: .*)?$")
_MOST_LETTERS = 200
_LATE = "no end after"

LONGEST_SECS = 24 * 60 * 60


class Attempt:
    """`python WORDS`, in a folder of its own; a context manager that leaves nothing running."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        deadline: int,
        env: Mapping[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        """Starts it.

        Args:
          words: the command line of Python.
          folder: where it runs; made here.
          deadline: seconds after which it ends.
          env: added to our environment.
          pass_fds: descriptors that it inherits.
        """
        folder.mkdir(parents=True)
        self._said, self._complaints = folder / "stdout", folder / "stderr"
        self._deadline = deadline
        with open(self._said, "wb") as stdout, open(self._complaints, "wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**_environment(), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                # The kernel keeps the deadline, also when we are killed: exec leaves alarms set.
                preexec_fn=functools.partial(signal.alarm, deadline),
            )

    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait(self) -> str:
        """Waits for the end; returns `failure`."""
        self._process.wait()
        return self.failure

    @property
    def failure(self) -> str:
        """Why it failed, in one line of ASCII; "" while it runs, and where it ended well."""
        code = self._process.poll()
        if not code:
            return ""
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

    @property
    def result(self) -> str:
        """The last line that it printed."""
        return _lines(self._said)[-1]

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._process.kill()  # Does nothing to one that has been waited for.
        self._process.wait()


def is_late(failure: str) -> bool:
    """Whether a `failure` is that of a deadline: what was tried may be slow, and nothing wrong."""
    return re.match(rf"(\w+: )?{_LATE} [0-9]+ s", failure) is not None


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _environment() -> dict[str, str]:
    """Returns ours, in which the packages are found from any folder."""
    kept = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    kept.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow's notes are no reasons.
    paths = filter(None, [kept.get("PYTHONPATH"), _PACKAGES])
    return dict(kept, PYTHONPATH=os.pathsep.join(paths), PYTHONUNBUFFERED="1")
