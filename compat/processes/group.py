"""Child processes that live and end together, with their output in one stream.

Example:
  >>> commands = [Command("ps 0", ("sleep", "60")), Command("worker 0", ("false",))]
  >>> with ProcessGroup(commands) as group:
  ...     code = group.wait()
  worker 0 failed with exit code 1; stopping ps 0
"""

from __future__ import annotations

import contextlib
import select
import signal
import sys
import time
from dataclasses import replace
from typing import Any, Callable, Iterator, Mapping, Sequence, TextIO

from compat.errors import PeerError, UserError, is_retryable
from compat.processes.child import Child, Command, Watchdog
from compat.processes.forking import ForkServer
from compat.processes.output import Output, discard
from compat.processes.restarts import Restarts

__all__ = ["MOST_TASKS", "Command", "ProcessGroup"]

# What one machine can do: `select` waits for descriptors below 1024 only, and a task has several.
MOST_TASKS = 200
_POLL_SECS = 0.02  # Two failures that follow each other this closely may be told apart wrongly.


class ProcessGroup:
    """Runs commands at the same time; a context manager that leaves nothing running.

    A command that fails is started again after a pause, if that may help, `max_restarts` times. The
    first one that fails for good stops all others: SIGTERM to each one's process group and, after a
    grace period, SIGKILL. SIGINT and SIGTERM to this process do the same, a second SIGINT kills at
    once. With this process, even if SIGKILL ends it, the commands end, too. Whatever a command
    leaves behind in its process group when it ends is stopped in the same way.

    What the commands write goes line by line to `out`, standard output by default, each line with
    "[name] " before it.

    Args:
      chief: name of the command after whose end the others have to end, too.
      servers: names of commands that never end; stopped when all others have ended with 0.
      last: names of commands that the others need in order to end well; as the servers, they are
        stopped only when all others have ended.
      beside: names of commands whose failure stops nobody, and is none of the group.
      say: told who failed, and who is stopped.
      grace: seconds between SIGTERM and SIGKILL.
      patience: seconds that the others have after the chief has ended with 0.
      silence: seconds without output after which those beside are stopped behind the others.
      overdue: exit code if commands had to be stopped because they ran on after the others.
      max_restarts: how often each command may be started again by its own fault; see `Restarts`.
      fork_server: starts the commands that it can, without the seconds of loading TensorFlow.
      may_pass: whether a command may be started again after this exit code.
      logs: files that also take the lines of a command, by its name.
      watch: told the name of each command that starts, with None, and that ends, with its code.

    Raises:
      UserError: `chief` is not the name of a command; on entering: a command cannot be started.
      ValueError: on entering: this is not the main thread, the only one that is told of signals.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        *,
        chief: str | None = None,
        servers: Sequence[str] = (),
        last: Sequence[str] = (),
        beside: Sequence[str] = (),
        say: Callable[[str], None] = print,
        out: TextIO | None = None,
        grace: float = 10.0,
        patience: float = 30.0,
        silence: float = 600.0,
        overdue: int = 1,
        max_restarts: int = 0,
        fork_server: ForkServer | None = None,
        may_pass: Callable[[int], bool] = is_retryable,
        logs: Mapping[str, TextIO] | None = None,
        watch: Callable[[str, int | None], object] = lambda name, code: None,
    ) -> None:
        names = [command.name for command in commands]
        if chief is not None and chief not in names:
            raise UserError(f"chief {chief!r} is no task; use one of {', '.join(names)}")
        self._commands = commands
        self._chief = chief
        self._servers = set(servers)
        self._last = {*servers, *last}
        self._beside = set(beside)
        self._missed: set[str] = set()  # Those of them that have failed.
        self._say = say
        self._out = out or sys.stdout
        self._output = Output(self._out, names)
        self._grace = grace
        self._patience = patience
        self._silence = silence
        self._fork_server = fork_server
        self._overdue = overdue
        self._logs = logs or {}
        self._watch = watch
        self._restarts = Restarts(max_restarts, self._beside, may_pass)
        self._children: list[Child] = []
        self._exit_code: int | None = None
        self._stop_grace: float | None = None  # None while nothing is being stopped.
        self._chief_ended: float | None = None
        self._heard = 0.0  # When one of those beside last wrote something.
        self._signals: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> ProcessGroup:
        self._watchdog = Watchdog()
        try:
            for signum in (signal.SIGINT, signal.SIGTERM):
                self._handlers[signum] = signal.signal(signum, self._on_signal)
            for command in self._commands:
                env = {**self._output.environment(), **command.env}
                command = replace(command, env=env)
                self._children.append(Child(command, self._watchdog, self._fork_server))
                self._watch(command.name, None)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._is_busy():
            self._exit_code = self._exit_code or 1  # What we stop ourselves is no failure.
        try:
            self._stop(self._grace)
            self.wait()
        finally:
            for signum, handler in self._handlers.items():
                signal.signal(signum, handler)
            self._watchdog.close()

    def wait(self) -> int:
        """Returns when all commands have ended.

        Returns:
          0 if all ended with 0; else what came first: the exit code of a command that failed, 128
          + n if signal n killed it; 130 after SIGINT and 143 after SIGTERM to us; 1 if commands
          were still running long after the chief's end; 141 if nobody reads our output any more.
        """
        while self._is_busy():
            readable = [child.output for child in self._running() if not child.at_end]
            ready = select.select(readable, [], [], _POLL_SECS)[0]
            for child in self._running():
                if child.output in ready:
                    self._copy_output(child)
                child.poll(time.monotonic(), self._grace)
                if child.over:
                    self._copy_output(child)
                    child.output.close()
                    self._watch(child.name, child.returncode)
            self._judge()
            self._start_again()
        return self._exit_code or 0

    def _running(self) -> list[Child]:
        return [child for child in self._children if not child.over]

    def _is_busy(self) -> bool:
        """Whether a command runs, or is to be started again."""
        return any(not child.over or child.again_at is not None for child in self._children)

    def _unfinished(self) -> list[str]:
        return [c.name for c in self._children if c.returncode is None or c.again_at is not None]

    def _on_signal(self, signum: int, frame: Any) -> None:
        self._signals.append(signum)

    def _judge(self) -> None:
        """Stops the others if something has happened that calls for it."""
        if self._signals.count(signal.SIGINT) > 1:
            self._stop(grace=0.0)
        elif self._stop_grace is not None:
            self._stop(self._stop_grace)
        for signum in self._signals:
            self._conclude(128 + signum, f"got {signal.Signals(signum).name}")
        # Who has lost another one comes after that one, whose failure excuses it.
        for child in sorted(self._children, key=lambda c: c.returncode == PeerError.exit_code):
            if child.returncode and child.again_at is None and child.name not in self._missed:
                self._fail(child, child.returncode)
        unfinished = set(self._unfinished())
        if unfinished and unfinished <= self._servers:
            self._conclude(0, "all others have ended")
        now = time.monotonic()
        idle = unfinished <= self._servers | self._beside
        chief = self._chief or "the last worker"
        if self._chief_ended is None:
            ended = [child.name for child in self._children if child.returncode == 0]
            if self._chief in ended or (self._chief is None and idle):
                self._chief_ended = now
        elif unfinished and idle:
            # Such as an evaluator, which has the last checkpoint to evaluate.
            if now - max(self._chief_ended, self._heard) > self._silence:
                self._conclude(
                    self._overdue, f"no output for {self._silence:g} s after {chief} ended"
                )
        elif now - self._chief_ended > self._patience and unfinished:
            self._conclude(
                self._overdue, f"{chief} ended {self._patience:g} s ago, the rest did not"
            )

    def _fail(self, child: Child, code: int) -> None:
        """Restarts a failed child, or stops the group unless the child is optional."""
        reason = f"{child.name} failed with {child.end()}"
        now = time.monotonic()
        is_stopping = self._exit_code is not None
        pause = None if is_stopping else self._restarts.pause(child.name, code, now - child.started)
        if pause is not None:
            child.again_at = now + pause
            count = self._restarts.count(child.name)
            self._announce(f"{reason}; starting it again in {pause:g} s ({count})")
        elif child.name not in self._beside:
            self._conclude(code, reason)
        else:
            self._missed.add(child.name)
            if not is_stopping:  # Else it is we who have stopped it.
                self._announce(f"{reason}; the others go on")

    def _start_again(self) -> None:
        """Starts those again whose time has come."""
        now = time.monotonic()
        for index, child in enumerate(self._children):
            if child.again_at is not None and child.over and now >= child.again_at:
                self._children[index] = child.again()
                self._watch(child.name, None)

    def _conclude(self, exit_code: int, reason: str) -> None:
        """Ends the group with `exit_code`, unless it already ends for an earlier reason."""
        if self._exit_code is not None:
            return
        self._exit_code = exit_code
        others = ", ".join(self._unfinished())
        self._announce(f"{reason}; stopping {others}" if others else reason)
        self._stop(self._grace)

    def _announce(self, line: str) -> None:
        with self._writing():  # So that it is said before the grace period, not after it.
            self._output.clear()
            self._out.flush()
            self._say(line)

    def _stop(self, grace: float) -> None:
        """Stops what runs; what others need only once these have ended, unless all is killed."""
        self._stop_grace = grace
        for child in self._children:
            child.again_at = None
        running = self._running()
        first = [child for child in running if child.name not in self._last]
        for child in first if first and grace else running:
            child.stop(time.monotonic() + grace)

    def _copy_output(self, child: Child) -> None:
        """Copies the lines that `child` has finished."""
        lines = child.read_lines()
        if lines and child.name in self._beside:
            self._heard = time.monotonic()
        with self._writing():
            self._output.write(child.name, lines, child.unfinished)
        if lines and child.name in self._logs:
            self._logs[child.name].write("".join(f"{line}\n" for line in lines))
            self._logs[child.name].flush()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Flushes the output at the end; stops all if nobody reads it, as in `... | head`."""
        try:
            yield
            self._out.flush()
        except BrokenPipeError:
            discard(self._out)  # Or Python's exit would fail.
            self._conclude(128 + signal.SIGPIPE, "nobody reads the output any more")
