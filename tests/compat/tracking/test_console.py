from __future__ import annotations

import fcntl
import io
import os
import pathlib
import pty
import struct
import subprocess
import sys
import termios

from compat.tracking.console import Console, closing_lines, step_line


def test_the_lines_are_those_of_the_example():
    assert step_line(18700, 18, 550, 550, 2.8933, 7.9) == (
        "Step: 18700,  Epoch: 18,  Batch: 550 of 550,  Cost: 2.8933,  AvgTime: 7.90ms"
    )
    assert step_line(100, 1, 99, 550, 12.5, 10.123) == (
        "Step: 100,  Epoch:  1,  Batch:  99 of 550,  Cost: 12.5000,  AvgTime: 10.12ms"
    )
    assert closing_lines(0.41, 221.72, 2.53581) == [
        "Test-Accuracy: 0.41", "Total Time: 221.72s", "Final Cost: 2.5358", "done"]  # fmt: skip


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
    assert "cannot be written to" in told and "the training goes on" in told


def test_a_terminal_has_a_bar_and_the_lines_above_it():
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    source = (
        "from compat.tracking.console import Console\n"
        "console = Console(None, total_steps=1000)\n"
        "console.say('Variables initialized ...')\n"
        "console.progress(600)\n"
        "console.say('Step: 600')\n"
        "console.close()\n"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-c", source], stdout=inside, stderr=inside, env=env, timeout=30
    )
    os.close(inside)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert done.returncode == 0, shown
    assert "| 600/1000 [" in shown
    assert "\rVariables initialized ...\r\n" in shown
    assert "\rStep: 600\r\n" in shown
