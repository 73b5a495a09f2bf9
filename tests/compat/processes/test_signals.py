"""What becomes of the commands when the launcher gets a signal, even one it cannot handle."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Iterator

import pytest

from tests.compat.processes.conftest import runs

pytestmark = pytest.mark.once
DEADLINE_SECS = 60

# Runs two commands of which each starts another one; all four say their numbers and stay.
LAUNCHER = """
import sys
from compat.processes.group import Command, ProcessGroup
commands = [Command(name, (sys.executable, "-I", "-S", "-c", sys.argv[1])) for name in ("a", "b")]
with ProcessGroup(commands, grace=float(sys.argv[2])) as group:
    sys.exit(group.wait())
"""
COMMAND = """
import os, signal, sys, time
if {stubborn}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(60)
"""


class Launcher:
    """A running launcher.

    Attributes:
      process: the launcher itself.
      pids: the numbers of the four processes that belong to it.
    """

    def __init__(self, stubborn: bool, grace: float) -> None:
        command = COMMAND.format(stubborn=stubborn)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, command, str(grace)],
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        self._deadline = threading.Timer(DEADLINE_SECS, self.process.kill)
        self._deadline.start()
        self.pids = [int(self.read_line().split("] ")[1]) for _ in range(4)]

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def wait(self) -> int:
        code = self.process.wait(DEADLINE_SECS)
        until = time.monotonic() + DEADLINE_SECS
        while any(map(runs, self.pids)) and time.monotonic() < until:
            time.sleep(0.02)
        assert not [pid for pid in self.pids if runs(pid)]
        return code

    def close(self) -> None:
        self._deadline.cancel()
        self.process.kill()
        self.process.communicate(timeout=DEADLINE_SECS)


@contextlib.contextmanager
def launcher(stubborn: bool = False, grace: float = 10.0) -> Iterator[Launcher]:
    started = Launcher(stubborn, grace)
    try:
        yield started
    finally:
        started.close()


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_stopping(signum: signal.Signals, code: int) -> None:
    with launcher() as started:
        started.process.send_signal(signum)
        assert started.read_line() == f"got {signum.name}; stopping a, b\n"
        assert started.wait() == code


def test_the_grace_period_ends() -> None:
    with launcher(stubborn=True, grace=1.0) as started:
        start = time.monotonic()
        started.process.send_signal(signal.SIGTERM)
        assert started.wait() == 143
        assert time.monotonic() - start > 1.0


def test_a_second_interrupt_kills_at_once() -> None:
    with launcher(stubborn=True, grace=2 * DEADLINE_SECS) as started:
        started.process.send_signal(signal.SIGINT)
        assert started.read_line() == "got SIGINT; stopping a, b\n"
        started.process.send_signal(signal.SIGINT)
        assert started.wait() == 130


@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGHUP], ids=["SIGKILL", "SIGHUP"])
def test_the_launchers_death(signum: signal.Signals, stubborn: bool) -> None:
    with launcher(stubborn) as started:
        started.process.send_signal(signum)
        assert started.wait() == -signum


def test_ctrl_c_at_a_terminal_reaches_the_launcher_only() -> None:
    """The commands have sessions of their own, or they would end before they are told to."""
    with launcher() as started:
        sessions = {os.getsid(pid) for pid in started.pids}
        assert len(sessions) == 2
        assert os.getsid(started.process.pid) not in sessions
