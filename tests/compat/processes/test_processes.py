from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

from compat.errors import UserError
from compat.processes.child import Child, Watchdog
from compat.processes.group import Command, ProcessGroup
from tests.compat.processes.conftest import python, run, runs

pytestmark = pytest.mark.once
DEADLINE_SECS = 120
IGNORE = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
# Says its number, leaves word that it is ready, and stays.
SLEEP = """import os, time
print(os.getpid(), flush=True)
open(f"{os.getpid()}.ready", "x").close()
time.sleep(60)
"""


def when_ready(count: int, code: str) -> str:
    """Returns a program that does `code` once `count` others are ready."""
    return f"""
import glob, os, sys, time
while len(glob.glob("*.ready")) < {count}:
    time.sleep(0.02)
{code}
"""


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """Ends a test that waits too long; leaving the group stops its processes."""

    def expire(signum: int, frame: Any) -> None:
        raise TimeoutError(f"{DEADLINE_SECS} s are over")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(DEADLINE_SECS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pids(lines: list[str]) -> list[int]:
    return [int(line.split("] ")[1]) for line in lines if line.split("] ")[1].isdigit()]


def assert_none_runs(numbers: list[int], expected: int) -> None:
    assert len(numbers) == expected
    until = time.monotonic() + 60
    while any(map(runs, numbers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [number for number in numbers if runs(number)]


def test_all_succeed() -> None:
    code, lines, said = run(
        [
            python("ps 0", "import os; print(os.environ['ROLE'], os.environ['PATH'])", ROLE="ps"),
            python("worker 0", "import sys; print('out'); sys.stdout.flush(); sys.exit(0)"),
            python("worker 1", "import sys; print('err', file=sys.stderr)"),
        ],
        chief="worker 0",
    )
    assert code == 0
    path = os.environ["PATH"]
    assert sorted(lines) == [f"[ps 0] ps {path}", "[worker 0] out", "[worker 1] err"]
    assert said == []


@pytest.mark.parametrize("exit_code", [3, 138])  # The latter by itself, not by a signal.
def test_the_first_failure_stops_the_others(exit_code: int) -> None:
    code, lines, said = run(
        [
            python("ps 0", SLEEP),
            python("worker 0", SLEEP),
            python("worker 1", when_ready(2, f"sys.exit({exit_code})")),
        ],
        grace=2 * DEADLINE_SECS,  # SIGTERM is enough.
    )
    assert code == exit_code
    assert said == [f"worker 1 failed with exit code {exit_code}; stopping ps 0, worker 0"]
    assert_none_runs(pids(lines), 2)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_death_by_a_signal(signum: signal.Signals) -> None:
    code, lines, said = run(
        [
            python("ps 0", SLEEP),
            python("worker 0", when_ready(1, f"os.kill(os.getpid(), {signum:d}); time.sleep(9)")),
        ]
    )
    assert code == 128 + signum
    assert said == [f"worker 0 failed with exit code {code} ({signum.name}); stopping ps 0"]
    assert_none_runs(pids(lines), 1)


def test_who_ignores_sigterm_is_killed() -> None:
    start = time.monotonic()
    fail = python("worker 0", when_ready(1, "sys.exit(5)"))
    code, lines, _ = run([python("ps 0", IGNORE + SLEEP), fail], grace=1.0)
    assert code == 5
    assert_none_runs(pids(lines), 1)
    assert time.monotonic() - start > 1.0


def test_there_is_time_to_end_in_good_order() -> None:
    save = """
import signal, sys, time
def save(*_):
    time.sleep(0.5)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("saver.ready", "x").close()
time.sleep(60)
"""
    fail = python("worker 1", when_ready(1, "sys.exit(4)"))
    code, lines, said = run([python("worker 0", save), fail])
    assert code == 4
    assert lines == ["[worker 0] saved"]
    assert said == ["worker 1 failed with exit code 4; stopping worker 0"]


def grandparent(code: str, then: str) -> str:
    """A program that starts a program, prints its pid, and goes on."""
    return f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", {code!r}], stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), end="", flush=True)
{then}
"""


@pytest.mark.parametrize("code", [SLEEP, IGNORE + SLEEP], ids=["obedient", "stubborn"])
@pytest.mark.parametrize("then", ["time.sleep(60)", "sys.exit(7)"], ids=["stays", "fails"])
def test_grandchildren_end_as_well(code: str, then: str) -> None:
    fail = python("worker 0", when_ready(1, "sys.exit(7)"))
    result, lines, _ = run([python("ps 0", grandparent(code, then)), fail], grace=0.5)
    assert result == 7
    assert_none_runs(pids(lines), 1)


def test_what_a_finished_command_leaves_behind_is_stopped() -> None:
    code, lines, said = run([python("worker 0", grandparent(SLEEP, "sys.exit(0)"))])
    assert code == 0
    assert said == []
    assert_none_runs(pids(lines), 1)


def test_a_process_that_left_the_group_is_not_waited_for() -> None:
    leave = "import os; os.setsid(); " + SLEEP
    code, lines, _ = run([python("worker 0", grandparent(leave, "print('half', end='')"))])
    (daemon,) = pids(lines)
    try:
        assert code == 0
        assert lines[-1] == "[worker 0] half"
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_lines_are_never_mixed() -> None:
    slowly = """
import sys, time
for part in ("be", "gin\\nmid", "dle\\n\\nend"):
    sys.stdout.write(part)
    sys.stdout.flush()
    time.sleep(0.1)
"""
    _, lines, _ = run([python(name, slowly) for name in ("ps 0", "worker 0")])
    for name in ("ps 0", "worker 0"):
        own = [line for line in lines if line.startswith(f"[{name}]")]
        assert own == [f"[{name}] {line}" for line in ("begin", "middle", "", "end")]


def test_much_output_stays_whole_and_in_order() -> None:
    count = 20000
    write = f"for n in range({count}): print('line', n, 'x' * (n % 100))"
    _, lines, _ = run([python("ps 0", write), python("worker 0", write)])
    for name in ("ps 0", "worker 0"):
        own = [line for line in lines if line.startswith(f"[{name}]")]
        assert own == [f"[{name}] line {n} {'x' * (n % 100)}" for n in range(count)]


def test_bytes_that_are_no_text() -> None:
    write = r"import os; os.write(1, b'\xff\xc3\xa4\n')"
    assert run([python("ps 0", write)])[1] == [r"[ps 0] \xffä"]
    with io.BytesIO() as raw, io.TextIOWrapper(raw, encoding="ascii") as out:
        with ProcessGroup([python("ps 0", write)], out=out) as group:
            group.wait()
        assert raw.getvalue() == rb"[ps 0] \xff\xe4" + b"\n"


@pytest.mark.parametrize("no_color", ["", "1"])
def test_names_are_coloured_on_a_terminal_only(
    no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        with ProcessGroup([python("ps 0", "print('hello')")], out=terminal) as group:
            group.wait()
        name = b"[ps 0] " if no_color else b"\033[31m[ps 0] \033[0m"
        assert os.read(ours, 1000) == name + b"hello\r\n"
    os.close(ours)


def test_nobody_reads_any_more() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    said: list[str] = []
    commands = [python("ps 0", SLEEP)]
    with os.fdopen(writing, "w") as out, ProcessGroup(commands, say=said.append, out=out) as group:
        assert group.wait() == 141
    assert said == ["nobody reads the output any more; stopping ps 0"]


@pytest.mark.parametrize(
    ("secs", "patience", "overdue", "expected"), [(1, 20, 1, 0), (60, 0.5, 1, 1), (60, 0.5, 0, 0)]
)
def test_the_chiefs_end_is_the_end(secs: int, patience: float, overdue: int, expected: int) -> None:
    commands = [
        python("ps 0", f"import time; time.sleep({secs})"),
        python("worker 0", "pass"),
        python("worker 1", f"import time; time.sleep({secs})"),
    ]
    code, _, said = run(commands, chief="worker 0", patience=patience, overdue=overdue)
    assert code == expected
    complaint = "worker 0 ended 0.5 s ago, the rest did not; stopping ps 0, worker 1"
    assert said == ([complaint] if patience < secs else [])


def test_without_the_chief_having_ended_nobody_is_hurried() -> None:
    commands = [python("ps 0", "pass"), python("worker 0", "import time; time.sleep(1)")]
    assert run(commands, chief="worker 0", patience=0.1) == (0, [], [])


def test_a_command_that_cannot_be_started() -> None:
    with io.StringIO() as out:
        sleeper = python("ps 0", SLEEP)
        group = ProcessGroup([sleeper, Command("worker 0", ("no-such-program",))], out=out)
        with pytest.raises(UserError, match="^worker 0: 'no-such-program' cannot be started .No s"):
            group.__enter__()
        assert [runs(pid) for pid in pids(out.getvalue().splitlines())] in ([], [False])


def test_leaving_stops_all() -> None:
    commands = [python("ps 0", SLEEP), python("ps 1", IGNORE + SLEEP)]
    said: list[str] = []
    with io.StringIO() as out:
        group = ProcessGroup(commands, say=said.append, out=out, grace=0.5)
        with pytest.raises(ZeroDivisionError), group:
            while len(list(Path().glob("*.ready"))) < 2:
                time.sleep(0.02)
            raise ZeroDivisionError
        lines = out.getvalue().splitlines()
    assert_none_runs(pids(lines), 2)
    assert said == []


def test_signal_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    run([python("ps 0", "pass")])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_chief_must_be_a_command() -> None:
    with pytest.raises(UserError, match="^chief 'chief' is not a task; use one of ps 0, worker 0$"):
        ProcessGroup([python("ps 0", "pass"), python("worker 0", "pass")], chief="chief")


def test_of_a_progress_bar_only_its_last_state_is_kept() -> None:
    code = r"""
import sys
for i in range(80_000):
    sys.stdout.write(f"\r{i:>400}" if i % 2 else f"{i:>400}\r")
sys.stdout.write("\rlast\r")
"""
    watchdog = Watchdog()
    most = 0
    with contextlib.closing(watchdog):
        child = Child(python("worker 0", code), watchdog, None)
        lines: list[str] = []
        while not child.at_end:
            select.select([child.output], [], [], DEADLINE_SECS)
            lines += child.read_lines()
            most = max(most, len(child.unfinished))
            child.poll(time.monotonic(), 0)
    assert lines == ["last"]
    assert most < 1000


def test_a_line_without_end_is_taken_apart() -> None:
    code, lines, _ = run([python("worker 0", "print('a' * 3_000_000)")])
    assert code == 0
    assert sum(line.count("a") for line in lines) == 3_000_000
    assert len(lines) in (2, 3)
