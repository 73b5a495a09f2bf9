"""Starts and stops a command in a process group of its own, and reads its output."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from typing import IO, Mapping

from compat.errors import UserError, reason_of
from compat.processes import stop_signals
from compat.processes.forking import ForkServer, start
from compat.processes.output import shown, without_hidden

_READ_BYTES = 1 << 20  # More than a pipe holds, so one read empties it.
_LONGEST_LINE = 1 << 20  # In bytes; longer lines are split.
_PROGRAM = """
import os, signal, sys
watched = set()
for number in map(int, sys.stdin.read().split()):
    if number > 0:
        watched.add(number)
    else:
        watched.discard(-number)
for group in watched:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


@dataclass(frozen=True)
class Command:
    """A command to run as the task `name`: `argv`, with `env` added to this environment.

    The first start passes the descriptors `pass_fds` and `kept_fds`, later starts only `kept_fds`.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    kept_fds: tuple[int, ...] = ()


class Watchdog:
    """Kills process groups if the launcher ends without doing so, as after SIGKILL.

    A new group writes its number to the pipe `fileno`, and is watched until `leave`. A small
    process waits for the end of the pipe, whose writing end only the launcher holds. Unlike
    PR_SET_PDEATHSIG of Linux, this works on macOS as well, and reaches grandchildren.
    """

    def __init__(self) -> None:
        # The launcher also holds the reading end, so writers do not fail if this process is killed.
        self._reading, self._writing = os.pipe()
        # A new session, so that Ctrl-C does not reach it; no site-packages, to start fast.
        with stop_signals.blocked():
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=self._reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def fileno(self) -> int:
        """Returns the descriptor to which a process writes its id before its program begins."""
        return self._writing

    def leave(self, group: int) -> None:
        """Stops watching an empty group, since the kernel may reuse its number."""
        os.write(self._writing, b"%d " % -group)

    def close(self) -> None:
        """Ends the watchdog, which kills the groups that are still watched."""
        os.close(self._writing)
        os.close(self._reading)
        self._process.wait()


class Child:
    """A started `Command`, in a session of its own; raises `UserError` if it cannot be started."""

    def __init__(
        self, command: Command, watchdog: Watchdog, fork_server: ForkServer | None
    ) -> None:
        reading, writing = os.pipe()
        # Its standard output and error.
        self.output: IO[bytes] = os.fdopen(reading, "rb", buffering=0)
        env = {**os.environ, **command.env}
        try:
            self._process = start(
                fork_server,
                command.argv,
                env=env,
                stdout=writing,
                stderr=writing,
                pass_fds=(*command.pass_fds, *command.kept_fds),
                watchdog=watchdog.fileno(),
            )
        except OSError as error:
            self.output.close()
            raise UserError(
                f"{command.name}: {command.argv[0]!r} cannot be started "
                f"({reason_of(error)}); correct the path of the program"
            ) from None
        finally:
            os.close(writing)
        self.started = time.monotonic()  # The time of the start.
        self.name = command.name
        os.set_blocking(self.output.fileno(), False)
        self.unfinished = b""  # The part of the next line that has been read.
        self.at_end = False  # Whether `output` is at its end.
        self.over = False  # Whether it has ended, and its process group is empty or killed.
        self.again_at: float | None = None  # The time of the next start.
        self._command = command
        self._watchdog = watchdog
        self._fork_server = fork_server
        self._kill_at = math.inf

    @property
    def returncode(self) -> int | None:
        """None while the command runs, then its exit code, 128 + n if signal n killed it."""
        code = self._process.returncode
        return 128 - code if code is not None and code < 0 else code

    def end(self) -> str:
        """Returns how the command ended, as "exit code 1" or "exit code 137 (SIGKILL)"."""
        names = {-signum: f" ({signum.name})" for signum in signal.Signals}
        return f"exit code {self.returncode}{names.get(self._process.returncode or 0, '')}"

    def again(self) -> Child:
        """Starts the command again, without the descriptors for the first start."""
        return Child(replace(self._command, pass_fds=()), self._watchdog, self._fork_server)

    def read_lines(self) -> list[str]:
        """Returns the lines that were finished since the last call; at the end, also a partial one.

        Splits lines of more than a megabyte.
        """
        chunk = self.output.read(_READ_BYTES)  # None if there is no output yet, b"" at the end.
        # When all is over, a process that left the group may still hold the pipe open.
        self.at_end = chunk == b"" or self.over
        *lines, rest = (self.unfinished + (chunk or b"")).split(b"\n")
        self.unfinished = without_hidden(rest)
        if len(self.unfinished) > _LONGEST_LINE:  # Without a limit, each call would copy it.
            lines.append(self.unfinished)
            self.unfinished = b""
        if self.at_end and self.unfinished:
            # Blanks erase a progress bar.
            if b"\r" not in self.unfinished or shown(self.unfinished).strip():
                lines.append(self.unfinished)
            self.unfinished = b""
        return [shown(line) for line in lines]

    def stop(self, kill_at: float) -> None:
        """Asks the process group to end, by SIGTERM, and sets the time when `poll` kills it."""
        if self._kill_at == math.inf:
            self._signal(signal.SIGTERM)
        self._kill_at = min(kill_at, self._kill_at)

    def poll(self, now: float, grace: float) -> None:
        """Updates `returncode` and `over`; leftover processes have `grace` seconds to end."""
        has_ended = self._process.poll() is not None
        if has_ended and self._signal(0):
            self.stop(now + grace)
        is_killed = now >= self._kill_at
        if is_killed:
            self._signal(signal.SIGKILL)
        # Killed processes stay in the group as zombies if no init process collects them.
        if has_ended and (is_killed or not self._signal(0)):
            self.over = True
            self._watchdog.leave(self._process.pid)

    def _signal(self, signum: int) -> bool:
        """Sends a signal, 0 for none, to the process group; returns whether the group exists."""
        try:
            os.killpg(self._process.pid, signum)
        except (ProcessLookupError, PermissionError):  # macOS raises PermissionError for zombies.
            return False
        return True
