"""Downloads in processes of their own: two at once, interrupted, and on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import experiments
from compat.datasets.published import FILES, Published

if TYPE_CHECKING:
    from tests.compat.datasets.conftest import Sample, Server

Serve = Callable[[str], "Server"]

PROGRAM = """
import json, signal, sys
from pathlib import Path
from compat.datasets.download import download
from compat.datasets.published import FILES, Published
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may ignore it
folder, url, sha256 = sys.argv[1:]
published = Published("made", "Made", json.loads(sha256), (url,))
download(published, FILES, Path(folder), say=print, limit_secs=120)
"""


def command(published: Published, folder: Path) -> dict[str, Any]:
    """How to start a process that downloads."""
    root = Path(experiments.__file__).resolve().parents[1]
    sums = json.dumps(dict(published.sha256))
    return {
        "args": [sys.executable, "-c", PROGRAM, str(folder), published.mirrors[0], sums],
        "env": {**os.environ, "PYTHONPATH": str(root)},
        "stdout": subprocess.PIPE,
    }


def test_two_processes_at_the_same_time(made: Sample, serve: Serve, tmp_path: Path) -> None:
    published = made.served_by(serve("in_pieces").url)
    processes = [subprocess.Popen(**command(published, tmp_path)) for _ in range(2)]
    try:
        for process in processes:
            process.communicate(timeout=150)
            assert process.returncode == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    made.assert_downloaded(tmp_path)


def test_ctrl_c_leaves_nothing_half_written(made: Sample, serve: Serve, tmp_path: Path) -> None:
    published = made.served_by(serve("dripping").url)
    process = subprocess.Popen(**command(published, tmp_path), stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=150)
    finally:
        process.kill()
        process.wait()
    assert b"\nKeyboardInterrupt" in errors
    assert not list(tmp_path.iterdir())


def test_a_terminal_shows_a_bar(made: Sample, serve: Serve, tmp_path: Path) -> None:
    published = made.served_by(serve("in_pieces").url)
    terminal, stderr = pty.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))  # rows and columns
    process = subprocess.Popen(**command(published, tmp_path), stderr=stderr)
    os.close(stderr)
    shown = b""
    try:
        while True:
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:  # Linux's way to say that nobody holds the other end any more
                break
            if not part:
                break
            shown += part
        process.communicate(timeout=150)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert process.returncode == 0
    for name in FILES:
        assert name.encode() in shown
    assert b"%" in shown
    made.assert_downloaded(tmp_path)
