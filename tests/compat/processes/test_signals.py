"""What becomes of the commands when the launcher gets a signal, even one it cannot handle."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest

from tests.compat.processes.conftest import runs

pytestmark = pytest.mark.once
DEADLINE_SECS = 60

# Runs two commands of which each starts another one; all four say their numbers and stay.
LAUNCHER = """
import sys
from compat.processes.command import run
from compat.processes.group import Command, ProcessGroup
commands = [Command(name, (sys.executable, "-I", "-S", "-c", sys.argv[1])) for name in ("a", "b")]
def main():
    with ProcessGroup(commands, grace=float(sys.argv[2])) as group:
        return group.wait()
run(main)
"""
COMMAND = """
import os, signal, sys, time
if {stubborn}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(60)
"""


# Saves what it has when it is asked to stop, which takes a while and must not be cut off.
SAVING = """
import os, signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
os.write(1, b"%d\\n" % os.getpid())
while not asked:
    time.sleep(0.02)
for _ in range(20):
    time.sleep(0.02)
open("saved-%d" % os.getpid(), "w").close()
os.write(1, b"saved\\n" * 1000)
sys.exit(143)
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
    ("signum", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
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
def test_the_launchers_death(stubborn: bool) -> None:
    with launcher(stubborn) as started:
        started.process.kill()
        assert started.wait() == -signal.SIGKILL


def started_by(pid: int) -> list[int]:
    """Returns the processes that `pid` has started, those that they have started first."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        children = [int(word) for word in file.read().split()]
    return [*(found for child in children for found in started_by(child)), *children]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which processes there are")
@pytest.mark.parametrize("order", [1, -1], ids=["children first", "launcher first"])
def test_signals_to_all_processes_cut_nothing_off(order: int, tmp_path: Path) -> None:
    """As systemd, `scancel` and `pkill` send them."""
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, SAVING, str(DEADLINE_SECS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    deadline = threading.Timer(DEADLINE_SECS, process.kill)
    deadline.start()
    try:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        everybody = [*started_by(process.pid), process.pid][::order]
        assert len(everybody) == 4  # With the watchdog.
        for _ in range(3):
            for pid in everybody:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.02)
        said = process.stdout.read()
        assert process.wait(DEADLINE_SECS) == 143, said
        assert len(list(tmp_path.glob("saved-*"))) == 2
        assert "Error" not in said
    finally:
        deadline.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


QUICK = """
import os, time
os.write(1, b"%d\\n" % os.getpid())
while not os.path.exists("end"):
    time.sleep(0.02)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which processes there are")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_without_its_watchdog_a_launcher_ends_well(signum: signal.Signals, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", LAUNCHER, QUICK, "10"], stdout=out)
    try:
        until = time.monotonic() + DEADLINE_SECS
        while len((tmp_path / "out").read_text().splitlines()) < 2:
            assert time.monotonic() < until
            time.sleep(0.02)
        (watchdog,) = [
            pid for pid in started_by(process.pid) if b"killpg" in command_line(pid)
        ]  # fmt: skip
        os.kill(watchdog, signum)
        time.sleep(0.1)
        (tmp_path / "end").touch()
        assert process.wait(DEADLINE_SECS) == 0
    finally:
        process.kill()
        process.wait()


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no device that is full")
def test_output_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    code = "print('line\\n' * 10000); open('done-%d' % __import__('os').getpid(), 'w').close()"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", LAUNCHER, code, "10"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_SECS,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(tmp_path.glob("done-*"))) == 2


def test_a_closed_terminal_cuts_nothing_off(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, SAVING, str(DEADLINE_SECS)], stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        said = b""
        while said.count(b"\n") < 2:
            said += os.read(ours, 1000)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(DEADLINE_SECS) == 129
        assert len(list(tmp_path.glob("saved-*"))) == 2
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_at_a_terminal_reaches_the_launcher_only() -> None:
    """The commands have sessions of their own, or they would end before they are told to."""
    with launcher() as started:
        sessions = {os.getsid(pid) for pid in started.pids}
        assert len(sessions) == 2
        assert os.getsid(started.process.pid) not in sessions


BEFORE_DEATH = """
import os, signal, sys, time
from compat.processes import stop_signals
stop_signals.before_death(lambda signum: print("asked by", signum))
if {own}:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        os.write(writing, b"here")
        time.sleep(60)
    finally:
        os._exit(7)
if {own}:
    os.read(reading, 1)  # Python ignores what its handler raises amid a fork.
os.kill(child, signal.SIGTERM)
print("the child's end:", os.waitpid(child, 0)[1], flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM] if {blocked} else [])
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("own", "blocked", "said", "code"),
    [
        (False, False, "asked by 15\n", 143),
        (False, True, "asked by 15\n", 143),
        (True, False, "", 7),
    ],
    ids=["alone", "while the main thread waits", "the program's own handler"],
)
def test_what_is_done_before_death(own: bool, blocked: bool, said: str, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BEFORE_DEATH.format(own=own, blocked=blocked)],
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    assert process.stdout is not None
    try:
        child_code = 7 << 8 if own else signal.SIGTERM
        assert process.stdout.readline() == f"the child's end: {child_code:d}\n"
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == said
        assert process.wait(DEADLINE_SECS) == code
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
