"""How commands begin and end: their streams, their folder, and what a signal leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.compat.processes.conftest import runs
from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
DEADLINE_SECS = 120
ENV = {**os.environ, "PYTHONPATH": PACKAGES}
# A program that says which numbers its own streams and the next file have, and that it trained.
PROGRAM = """
import os, sys
import compat
def main(argv):
    with open("file", "w") as file:
        print("a line")
        sys.stdout.flush()
        file.write("%d trained" % file.fileno())
compat.run_main(main)
"""


def python(*words: str, **options: Any) -> Any:
    options = {"env": ENV, "stderr": subprocess.PIPE, **options}
    return subprocess.run([sys.executable, *words], timeout=DEADLINE_SECS, **options)


def test_without_streams_a_program_runs(tmp_path: Path) -> None:
    shell = f'exec {sys.executable} -c "$0" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", shell, PROGRAM], env=ENV, timeout=DEADLINE_SECS)
    assert done.returncode == 0
    number, said = (tmp_path / "file").read_text().split()
    assert (int(number) > 2, said) == (True, "trained")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no device that is full")
def test_on_a_full_disk_a_program_runs(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = python("-c", PROGRAM, stdout=full)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "file").read_text().endswith("trained")


@pytest.mark.parametrize(
    "words",
    [
        ["../program.py"],
        ["-m", "compat", "check", "x.py"],
        ["-m", "experiments"],
        ["-m", "experiments.launch", "--", "x.py"],
    ],
    ids=["program", "compat", "experiments", "launch"],
)
def test_a_deleted_folder_is_named(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [word.replace("..", str(tmp_path)) for word in words]
    folder = tmp_path / "folder"
    folder.mkdir()
    shell = 'cd "$0" && rmdir "$0" && exec "$@"'
    command = ["sh", "-c", shell, str(folder), sys.executable, *words]
    done = subprocess.run(command, env=ENV, stderr=subprocess.PIPE, timeout=DEADLINE_SECS)
    assert done.returncode == 2
    said = b"error: the working directory was deleted, and relative paths mean nothing; cd to "
    assert done.stderr == said + b"another\n"


ENDLESS = """
import os, time
with open("new", "w") as file:
    file.write(str(os.getpid()))
os.rename("new", "pid")
time.sleep(600)
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_side_of_a_proof_outlives_it(signum: signal.Signals, tmp_path: Path) -> None:
    for name in ("endless.py", "other.py"):
        (tmp_path / name).write_text(ENDLESS)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "compat", "prove", "--b=other.py", "endless.py"]
    env = {**ENV, "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE)
    until = time.monotonic() + DEADLINE_SECS
    try:
        while not (tmp_path / "pid").exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        side = int((tmp_path / "pid").read_text())
        process.send_signal(signum)
        said = process.communicate(timeout=DEADLINE_SECS)[1]
        while runs(side):
            assert time.monotonic() < until
            time.sleep(0.05)
        if signum != signal.SIGKILL:  # Which lets nobody tidy up.
            assert (process.returncode, said) == (128 + signum, b"")
            assert list((tmp_path / "temporary").iterdir()) == []
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE_SECS)
