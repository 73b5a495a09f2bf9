"""Groups of small programs, and what becomes of them."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from compat.processes.group import Command, ProcessGroup


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder in which the programs work, where they leave word that they are ready."""
    monkeypatch.chdir(tmp_path)


def python(name: str, code: str, **env: str) -> Command:
    return Command(name, (sys.executable, "-I", "-S", "-c", code), env)


# For programs: one leaves its id, and another waits until the group has seen that it has ended.
LEAVE_ID = "import os; open('id', 'w').write(str(os.getpid()))"
AWAIT_END = """
import os, sys, time
while not os.path.exists("id") or not open("id").read():
    time.sleep(0.01)
while os.path.exists("/proc/" + open("id").read()):
    time.sleep(0.01)
"""


def run(commands: list[Command], **options: Any) -> tuple[int, list[str], list[str]]:
    """Returns the exit code, the lines copied, and what was said."""
    said: list[str] = []
    with io.StringIO() as out:
        with ProcessGroup(commands, say=said.append, out=out, **options) as group:
            code = group.wait()
        return code, out.getvalue().splitlines(), said


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie that no init process collects does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
