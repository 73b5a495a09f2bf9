"""What the launcher stops last: parameter servers, to which a chief saves what was reached."""

from __future__ import annotations

import io
import signal
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from compat.processes.group import Command, ProcessGroup

pytestmark = pytest.mark.once
DEADLINE_SECS = 120
SERVER = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
open("server", "w").write(str(os.getpid()))
time.sleep(60)
"""
CHIEF = """
import os, signal, sys, time
def save(*_):
    time.sleep(0.5)
    os.kill(int(open("server").read()), 0)  # Raises if it is gone.
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("chief", "w").close()
time.sleep(60)
"""
FAILING = """
import os, sys, time
while not (os.path.exists("chief") and os.path.exists("server") and open("server").read()):
    time.sleep(0.02)
sys.exit(3)
"""


@pytest.fixture(autouse=True)
def deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends a test that waits too long; leaving the group stops its processes."""

    def expire(signum: int, frame: Any) -> None:
        raise TimeoutError(f"{DEADLINE_SECS} s are over")

    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(DEADLINE_SECS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("option", ["last", "servers"])
def test_what_others_need_to_end_well_is_stopped_last(option: str) -> None:
    programs = {"ps": SERVER, "chief": CHIEF, "worker": FAILING}
    commands = [Command(name, (sys.executable, "-c", code)) for name, code in programs.items()]
    said: list[str] = []
    out = io.StringIO()
    options: dict[str, Any] = {option: ["ps"]}
    with ProcessGroup(commands, say=said.append, out=out, **options) as group:
        code = group.wait()
    assert code == 3
    assert said == ["worker failed with exit code 3; stopping ps, chief"]
    assert "[chief] saved" in out.getvalue().splitlines()
