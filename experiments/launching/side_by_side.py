"""Runs several programs at the same time, each as a process, with its output in a file."""

from __future__ import annotations

import contextlib
import os
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ContextManager, Sequence, TextIO

from compat.processes.child import Child, Command, Watchdog
from compat.processes.local_cluster import visible_gpus
from compat.processes.output import open_log
from experiments.launching.command_line import log_level
from experiments.launching.launcher import loading

_POLL_SECS = 0.1
# Between SIGTERM and SIGKILL; longer than the time that the launcher of a cluster gives its tasks.
_GRACE_SECS = 15.0


@dataclass(frozen=True)
class Ended:
    """A program that has ended: its exit code, and its last error line, or else its last line."""

    name: str
    code: int
    line: str


class Programs(ContextManager["Programs"]):
    """Runs at most `slots` programs at the same time; a context manager that leaves none running.

    They end with this process, even if SIGKILL ends it. TensorFlow is loaded once for all of them.
    If there are several slots, each uses one of the visible GPUs, in turn.
    """

    def __init__(self, slots: int) -> None:
        self._slots: list[str | None] = [None] * slots
        self._gpus = visible_gpus(os.environ) if slots > 1 else []
        self._children: dict[str, tuple[Child, TextIO]] = {}
        self._lines: dict[str, str] = {}

    def __enter__(self) -> Programs:
        self._watchdog = Watchdog()
        self._fork_server = loading()
        return self

    def start(self, name: str, argv: Sequence[str], output: Path) -> None:
        """Starts a program in a free slot; what it prints is appended to the file `output`."""
        slot = self._slots.index(None)
        env = {"PYTHONUNBUFFERED": "1", **log_level()}
        if self._gpus:
            env["CUDA_VISIBLE_DEVICES"] = self._gpus[slot % len(self._gpus)]
        output.parent.mkdir(parents=True, exist_ok=True)
        child = Child(Command(name, tuple(argv), env), self._watchdog, self._fork_server)
        self._children[name] = child, open_log(output, "a")
        self._slots[slot], self._lines[name] = name, ""

    def stop(self, name: str) -> None:
        """Sends SIGTERM to a program, and SIGKILL if it still runs 15 s later."""
        self._children[name][0].stop(time.monotonic() + _GRACE_SECS)

    def poll(self) -> list[Ended]:
        """Copies new output, waiting at most 0.1 s for it; returns the programs that have ended."""
        readable = [child.output for child, _ in self._children.values() if not child.at_end]
        ready = select.select(readable, [], [], _POLL_SECS)[0]
        ended = []
        for name, (child, file) in list(self._children.items()):
            if child.output in ready:
                self._copy(name, child, file)
            child.poll(time.monotonic(), _GRACE_SECS)
            if child.over:
                self._copy(name, child, file)
                child.output.close()
                file.close()
                del self._children[name]
                self._slots[self._slots.index(name)] = None
                ended.append(Ended(name, child.returncode or 0, self._lines.pop(name)))
        return ended

    def _copy(self, name: str, child: Child, file: TextIO) -> None:
        for line in child.read_lines():
            print(line, file=file, flush=True)
            if line.startswith("error: ") or not self._lines[name].startswith("error: "):
                self._lines[name] = line

    def __exit__(self, *exception: object) -> None:
        try:
            for name in self._children:
                self.stop(name)
            while self._children:
                self.poll()
        finally:
            with contextlib.closing(self._watchdog):  # Kills what still runs.
                self._fork_server.close()
