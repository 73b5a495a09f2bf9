"""Runs child processes that start and stop together, and merges their output."""

from __future__ import annotations

import contextlib
import select
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, Mapping, Sequence, TextIO

from compat import errors
from compat.errors import PeerError, UserError
from compat.processes import stop_signals
from compat.processes.child import Child, Command, Watchdog
from compat.processes.forking import ForkServer
from compat.processes.output import Output, discard
from compat.processes.restarts import Restarts

__all__ = ["MOST_TASKS", "Command", "ProcessGroup"]

# A limit, because `select` supports only descriptors below 1024, and a task needs several.
MOST_TASKS = 200
_POLL_SECS = 0.02  # The order of two failures within this time is unknown.


@dataclass(eq=False)
class ProcessGroup:
    """Runs commands at the same time; a context manager that leaves nothing running.

    A command with a retryable failure is started again after a pause, up to `max_restarts` times.
    The first command that fails for good stops all others: SIGTERM to each process group and, after
    a grace period, SIGKILL. SIGINT, SIGTERM and SIGHUP to this process do the same; a second SIGINT
    kills at once. If this process ends, even by SIGKILL, the commands end as well.
    Processes that a command leaves behind in its process group are stopped in the same way.

    The lines that commands print go to `out`, each after "[name] ". Output that cannot be written,
    as on a full disk or a closed terminal, is lost, and the commands continue.

    Raises:
      UserError: `chief` is not the name of a command; on entering: a command cannot be started.
      ValueError: On entering: this is not the main thread, the only one that receives signals.
    """

    commands: Sequence[Command]
    chief: str | None = None  # The command after which the others have to exit, too.
    # Commands that never exit; stopped when all others have exited with 0.
    servers: Sequence[str] = ()
    last: Sequence[str] = ()  # Commands that the others need until they exit; stopped last.
    beside: Sequence[str] = ()  # Commands whose failure does not fail the group.
    say: Callable[[str], None] = print  # Receives lines about failures and stops.
    out: TextIO | None = None
    grace: float = 10.0  # Seconds between SIGTERM and SIGKILL.
    patience: float = 30.0  # Seconds for the others after the chief has exited with 0.
    silence: float = 600.0  # Seconds without output after which commands `beside` are stopped.
    overdue: int = 1  # Exit code if commands had to be stopped after the chief's end.
    max_restarts: int = 0  # Restarts of each command by its own fault; see `Restarts`.
    fork_server: ForkServer | None = None  # Forks commands, so that they need not load TensorFlow.
    is_retryable: Callable[[int], bool] = errors.is_retryable  # Whether an exit code is retryable.
    # Files for the lines, by the name of the command.
    logs: Mapping[str, TextIO] = field(default_factory=dict)
    # Called with a command's name and None when it starts, and with its exit code when it exits.
    watch: Callable[[str, int | None], object] = lambda name, code: None

    def __post_init__(self) -> None:
        names = [command.name for command in self.commands]
        if self.chief is not None and self.chief not in names:
            raise UserError(f"chief {self.chief!r} is not a task; use one of {', '.join(names)}")
        self._last = {*self.servers, *self.last}
        self._missed: set[str] = set()  # Commands `beside` that have failed.
        self._out = self.out or sys.stdout
        self._output = Output(self._out, names)
        self._restarts = Restarts(self.max_restarts, self.beside, self.is_retryable)
        self._children: list[Child] = []
        self._exit_code: int | None = None
        self._stop_grace: float | None = None  # None until the group is being stopped.
        self._chief_ended: float | None = None
        self._heard = 0.0  # The time of the last output of a command `beside`.
        self._signals: list[int] = []
        self._handled = contextlib.ExitStack()

    def __enter__(self) -> ProcessGroup:
        self._watchdog = Watchdog()
        try:
            self._handled.enter_context(
                stop_signals.handled(lambda signum, frame: self._signals.append(signum))
            )
            for command in self.commands:
                env = {**self._output.environment(), **command.env}
                command = replace(command, env=env)
                self._children.append(Child(command, self._watchdog, self.fork_server))
                self.watch(command.name, None)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._is_busy():
            # With an exit code, commands that are stopped below are not reported as failures.
            self._exit_code = self._exit_code or 1
        try:
            self._stop(self.grace)
            self.wait()
        finally:
            self._handled.close()
            self._watchdog.close()

    def wait(self) -> int:
        """Returns when all commands have ended.

        Returns 0 if all ended with 0. Otherwise the first event counts: the exit code of a failed
        command, or 128 + n if signal n killed it or stopped this process; `overdue` if commands
        still ran long after the chief's end; 141 if the reader of the output has exited.
        """
        while self._is_busy():
            readable = [child.output for child in self._running() if not child.at_end]
            ready = select.select(readable, [], [], _POLL_SECS)[0]
            for child in self._running():
                if child.output in ready:
                    self._copy_output(child)
                child.poll(time.monotonic(), self.grace)
                if child.over:
                    self._copy_output(child)
                    child.output.close()
                    self.watch(child.name, child.returncode)
            self._judge()
            self._start_again()
        return self._exit_code or 0

    def _running(self) -> list[Child]:
        return [child for child in self._children if not child.over]

    def _is_busy(self) -> bool:
        return any(not child.over or child.again_at is not None for child in self._children)

    def _unfinished(self) -> list[str]:
        return [c.name for c in self._children if c.returncode is None or c.again_at is not None]

    def _judge(self) -> None:  # noqa: C901
        """Stops the group after a signal, a failure or the end of the chief."""
        if self._signals.count(signal.SIGINT) > 1:
            self._stop(grace=0.0)
        elif self._stop_grace is not None:
            self._stop(self._stop_grace)
        for signum in self._signals:
            self._conclude(128 + signum, f"got {signal.Signals(signum).name}")
        # A command that has lost another one comes later, since the failure of the other excuses
        # it.
        for child in sorted(self._children, key=lambda c: c.returncode == PeerError.exit_code):
            if child.returncode and child.again_at is None and child.name not in self._missed:
                self._fail(child, child.returncode)
        unfinished = set(self._unfinished())
        if unfinished and unfinished <= {*self.servers}:
            self._conclude(0, "all others have ended")
        now = time.monotonic()
        idle = unfinished <= {*self.servers, *self.beside}
        chief = self.chief or "the last worker"
        if self._chief_ended is None:
            ended = [child.name for child in self._children if child.returncode == 0]
            if self.chief in ended or (self.chief is None and idle):
                self._chief_ended = now
        elif unfinished and idle:
            # An evaluator, for example, may still evaluate the last checkpoint.
            if now - max(self._chief_ended, self._heard) > self.silence:
                self._conclude(
                    self.overdue, f"no output for {self.silence:g} s after {chief} ended"
                )
        elif now - self._chief_ended > self.patience and unfinished:
            self._conclude(self.overdue, f"{chief} ended {self.patience:g} s ago, the rest did not")

    def _fail(self, child: Child, code: int) -> None:
        """Restarts a failed child, or stops the group unless the child is optional."""
        reason = f"{child.name} failed with {child.end()}"
        now = time.monotonic()
        is_stopping = self._exit_code is not None
        pause = None if is_stopping else self._restarts.pause(child.name, code, now - child.started)
        if pause is not None:
            child.again_at = now + pause
            count = self._restarts.count(child.name)
            self._announce(f"{reason}; starting it again in {pause:g} s ({count}){self._alone()}")
        elif child.name not in self.beside:
            self._conclude(code, reason)
        else:
            self._missed.add(child.name)
            if not is_stopping:  # Otherwise this process has stopped it.
                self._announce(f"{reason}; the others continue")

    def _alone(self) -> str:
        """Returns a phrase that names the commands without which a command is restarted.

        These have ended with exit code 0, and are not started again. Returns "" if there are none.
        Commands in `servers`, `last` and `beside` are not named.
        """
        helps = {*self.servers, *self.last, *self.beside}
        ended = [c.name for c in self._children if c.returncode == 0 and c.name not in helps]
        return f", without {', '.join(ended)}, which has made its part" if ended else ""

    def _start_again(self) -> None:
        now = time.monotonic()
        for index, child in enumerate(self._children):
            if child.again_at is not None and child.over and now >= child.again_at:
                self._children[index] = child.again()
                self.watch(child.name, None)

    def _conclude(self, exit_code: int, reason: str) -> None:
        """Ends the group with `exit_code`, unless it already ends for an earlier reason."""
        if self._exit_code is not None:
            return
        self._exit_code = exit_code
        others = ", ".join(self._unfinished())
        self._announce(f"{reason}; stopping {others}" if others else reason)
        self._stop(self.grace)

    def _announce(self, line: str) -> None:
        with self._writing():  # Flushes the line before the grace period.
            self._output.clear()
            self._out.flush()
            self.say(line)

    def _stop(self, grace: float) -> None:
        """Stops the running commands, and those of `last` after them, or kills all at once."""
        self._stop_grace = grace
        for child in self._children:
            child.again_at = None
        running = self._running()
        first = [child for child in running if child.name not in self._last]
        for child in first if first and grace else running:
            child.stop(time.monotonic() + grace)

    def _copy_output(self, child: Child) -> None:
        lines = child.read_lines()
        if lines and child.name in self.beside:
            self._heard = time.monotonic()
        with self._writing():
            self._output.write(child.name, lines, child.unfinished)
        if lines and child.name in self.logs:
            with contextlib.suppress(OSError):  # Lines that cannot be written are lost.
                self.logs[child.name].write("".join(f"{line}\n" for line in lines))
                self.logs[child.name].flush()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Flushes the output at the end; stops all if its reader has exited, as in `... | head`."""
        try:
            yield
            self._out.flush()
        except BrokenPipeError:
            discard(self._out)  # Otherwise Python's exit would fail.
            self._conclude(128 + signal.SIGPIPE, "nobody reads the output any more")
        except OSError:
            pass
