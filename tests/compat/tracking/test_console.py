from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios
import threading

import pytest

from compat.tracking.console import Console, closing_lines, step_line


def test_the_lines_are_those_of_the_example():
    assert step_line(18700, 18, 550, 550, 2.8933, 7.9, "cost") == (
        "Step: 18700,  Epoch: 18,  Batch: 550 of 550,  Cost: 2.8933,  AvgTime: 7.90ms"
    )
    assert step_line(100, 1, 99, 550, 12.5, 10.123) == (
        "Step: 100,  Epoch:  1,  Batch:  99 of 550,  Loss: 12.5000,  AvgTime: 10.12ms"
    )
    assert step_line(7, 1, 7, None, 12.5, 1.0) == "Step: 7,  Loss: 12.5000,  AvgTime: 1.00ms"
    tests, losses = {"": {"accuracy": 0.41, "loss": 2.5}}, {"validation, step 9": 2.53581}
    assert closing_lines(tests, 221.72, losses, "cost") == [
        "Test-Accuracy: 0.41",
        "Total Time: 221.72s",
        "Final Cost: 2.5358 (validation, step 9)",
        "done",
    ]
    assert closing_lines({"": {"loss": 0.001234}}, 1.0, {}) == [
        "Test-Loss: 0.001234", "Total Time: 1.00s", "done"]  # fmt: skip
    tests = {"best, step 6": {"accuracy": 0.5}, "last, step 9": {"accuracy": 0.25}}
    assert closing_lines(tests, 1.0, {})[0] == (
        "Test-Accuracy: 0.50 (best, step 6), 0.25 (last, step 9)"
    )


def test_lines_are_printed_and_kept(logdir):
    stream = io.StringIO()
    console = Console(logdir, total_steps=10, stream=stream)
    console.say("one")
    console.progress(5)
    console.close()
    Console(logdir, stream=stream).say("two")
    assert stream.getvalue() == "one\ntwo\n"
    assert pathlib.Path(logdir, "console.log").read_text() == "one\ntwo\n"


def test_all_but_the_chief_only_print(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream = io.StringIO()
    Console(stream=stream).say("one")
    assert stream.getvalue() == "one\n"
    assert not os.listdir(tmp_path)


def test_a_log_that_cannot_be_written_is_told_once(tmp_path):
    stream = io.StringIO()
    (tmp_path / "file").write_text("")
    console = Console(str(tmp_path / "file" / "run"), stream=stream)
    console.say("one")
    console.say("two")
    one, told, two = stream.getvalue().splitlines()
    assert (one, two) == ("one", "two")
    assert "cannot be written to" in told and "the run continues" in told


# A run of 1,000 steps that resumes from step 500, and makes 100 in 0.9 s, with a pause.
RUN = """
import time
from compat.tracking.console import Console
console = Console(None, total_steps=1000)
console.say("Variables initialized ...")
console.progress(500)
for step in range(520, 620, 20):
    time.sleep(0.5 if step == 520 else 0.1)
    console.progress(step)
console.say("Step: 600")
console.close()
console.say("done")
"""
LAUNCHED = """
import sys
from compat.processes.group import Command, ProcessGroup
commands = [Command("worker 0", (sys.executable, "-c", sys.argv[1])),
            Command("ps 0", (sys.executable, "-c", sys.argv[2]))]
with ProcessGroup(commands) as group:
    sys.exit(group.wait())
"""
WRITES_OVER = r"print('a\rb\r\nc\r', flush=True)"
ENV = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))


def on_a_terminal(*argv: str, rows: int = 24, columns: int = 80) -> str:
    """Returns what a program writes to a terminal."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = [sys.executable, "-c", *argv]
    process = subprocess.Popen(command, stdout=inside, stderr=inside, env=ENV)
    os.close(inside)
    shown = b""
    deadline = threading.Timer(100, process.kill)
    deadline.start()
    with contextlib.suppress(OSError):  # Linux' answer when nobody has the other end any more.
        while True:
            shown += os.read(terminal, 65536)
    os.close(terminal)
    assert process.wait(60) == 0, shown
    deadline.cancel()
    return shown.decode()


@pytest.mark.parametrize("rows, columns", [(24, 80), (0, 0)])  # Some do not know their size.
def test_a_terminal_has_a_bar_and_the_lines_above_it(rows, columns):
    shown = on_a_terminal(RUN, rows=rows, columns=columns)
    assert "Variables initialized ...\r\n" in shown
    assert "\rStep: 600\r\n" in shown
    assert shown.endswith("done\r\n")
    speeds = re.findall(r"\| 600/1000 \[[^\]]* ([0-9.]+)step/s\]", shown)
    # The first 500 steps are another run's.
    assert speeds and all(0 < float(speed) <= 112 for speed in speeds), speeds


def test_a_launcher_on_a_terminal_has_the_bar_as_its_last_line():
    shown = on_a_terminal(LAUNCHED, RUN, WRITES_OVER, columns=60)
    prefix = "\033[31m[worker 0] \033[0m"
    assert f"{prefix}Variables initialized ...\r\n" in shown
    bars = re.findall(re.escape(prefix) + r"([^\r\n\033]*\| \d+/1000 \[[^\r\n\033]*)", shown)
    assert bars, shown
    assert all(len("[worker 0] " + bar) < 60 and bar.endswith("]") for bar in bars), bars
    assert f"\r\033[K{prefix}Step: 600\r\n" in shown
    assert shown.endswith(f"{prefix}done\r\n")
    assert "\033[32m[ps 0] \033[0mb\r\n" in shown and "\033[32m[ps 0] \033[0mc\r\n" in shown


def test_a_launcher_without_a_terminal_has_no_bar():
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHED, RUN, WRITES_OVER],
        stdout=subprocess.PIPE,
        env=ENV,
        timeout=100,
    )
    assert sorted(done.stdout.decode().splitlines()) == [
        "[ps 0] b", "[ps 0] c", "[worker 0] Step: 600", "[worker 0] Variables initialized ...",
        "[worker 0] done"]  # fmt: skip


@pytest.mark.parametrize("later", ["console.say('more')", "print('more', flush=True)", ""])
def test_a_run_whose_output_is_not_read_any_more_continues(tmp_path, later):
    """As that of `program | head`."""
    source = (
        "import sys, time\n"
        "from compat.tracking.console import Console\n"
        "console = Console(sys.argv[1])\n"
        "console.say('one')\n"
        "sys.stdin.readline()\n"
        f"console.say('two')\n{later}\n"
        "print('buffered')\n"
        "sys.exit(3)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path)], env=ENV,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == b"one\n"
    process.stdout.close()
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 3
    process.stderr.close()
    more = "more\n" if "say" in later else ""
    assert (tmp_path / "console.log").read_text() == "one\ntwo\n" + more


def test_a_full_disk_under_the_output_does_not_end_the_run(tmp_path):
    with open("/dev/full", "w") as full:
        console = Console(str(tmp_path), stream=full)
        console.say("one")
        console.say("two")
    assert (tmp_path / "console.log").read_text() == "one\ntwo\n"
