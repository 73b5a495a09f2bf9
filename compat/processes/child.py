"""One running command and its process group: its output, its end, and how it is stopped."""

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

_READ_BYTES = 1 << 20  # More than a pipe holds, so that one read takes all that is there.
_LONGEST_LINE = 1 << 20  # Bytes, beyond which it becomes several.
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
    """A command to run: `argv`, with `env` added to our environment, as the task `name`.

    It gets the descriptors `pass_fds` when it is started first, and `kept_fds` each time.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    kept_fds: tuple[int, ...] = ()


class Watchdog:
    """Kills process groups, should the launcher end without doing so, as after SIGKILL.

    Those that have written their number to the pipe `fileno`, and have not been told to `leave`. A
    small process waits for the end of the pipe, whose end to write only the launcher holds. Other
    than Linux' PR_SET_PDEATHSIG this works on macOS as well, and reaches grandchildren.
    """

    def __init__(self) -> None:
        # The launcher holds the other end, too: if this process is killed, nobody who writes fails.
        self._reading, self._writing = os.pipe()
        # A session of its own, so that Ctrl-C does not reach it; no site-packages, to start fast.
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
        """Ends the watch over a group that is empty, since its number may be given out anew."""
        os.write(self._writing, b"%d " % -group)

    def close(self) -> None:
        """Ends the watchdog, which kills the groups that have not left."""
        os.close(self._writing)
        os.close(self._reading)
        self._process.wait()


class Child:
    """A started `Command`, in a session of its own; a `UserError` if it cannot be started."""

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
        self.started = time.monotonic()  # When it was.
        self.name = command.name
        os.set_blocking(self.output.fileno(), False)
        self.unfinished = b""  # What `read_lines` has read of the next line.
        self.at_end = False  # Whether `output` will bring nothing more.
        self.over = False  # It has ended, and its process group is empty or has been killed.
        self.again_at: float | None = None  # When it is to be started again.
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
        """Starts the command anew, without what was handed down to its first start."""
        return Child(replace(self._command, pass_fds=()), self._watchdog, self._fork_server)

    def read_lines(self) -> list[str]:
        """Returns the lines finished since the last call; at the end also one without newline.

        A line of more than a megabyte comes in parts.
        """
        chunk = self.output.read(_READ_BYTES)  # None if nothing is there now, b"" at the end.
        # When all is over, a process that left the group may still hold the pipe open.
        self.at_end = chunk == b"" or self.over
        *lines, rest = (self.unfinished + (chunk or b"")).split(b"\n")
        self.unfinished = without_hidden(rest)
        if len(self.unfinished) > _LONGEST_LINE:  # Each call would copy it.
            lines.append(self.unfinished)
            self.unfinished = b""
        if self.at_end and self.unfinished:
            # A progress bar is erased by blanks.
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
        """Updates `returncode` and `over`; what a command leaves behind has `grace` s to end."""
        has_ended = self._process.poll() is not None
        if has_ended and self._signal(0):
            self.stop(now + grace)
        is_killed = now >= self._kill_at
        if is_killed:
            self._signal(signal.SIGKILL)
        # Killed ones may stay in the group as zombies, where no init process collects them.
        if has_ended and (is_killed or not self._signal(0)):
            self.over = True
            self._watchdog.leave(self._process.pid)

    def _signal(self, signum: int) -> bool:
        """Sends a signal to the process group, 0 for none; returns whether anybody is in it."""
        try:
            os.killpg(self._process.pid, signum)
        except (ProcessLookupError, PermissionError):  # The latter is macOS' answer for zombies.
            return False
        return True
