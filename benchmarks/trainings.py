"""One training on a cluster of processes on this machine, and the memory that each one took."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterator, Sequence

import numpy as np
import psutil

from compat.processes.group import Command
from compat.processes.local_cluster import LocalCluster
from experiments.launching import launcher

ROOT = Path(__file__).resolve().parent.parent
_POLL_SECS = 0.05
_COUNT_SECS = 0.2
# The kernel counts KiB, that of macOS bytes.
_UNITS_A_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10


class FailedError(RuntimeError):
    """A process of a training failed, or the training took too long."""


@dataclass(frozen=True)
class Finished:
    """A training that is over."""

    output: str  # What worker 0 wrote, standard error as well.
    peaks: dict[str, float]  # The largest resident set of each process, in MiB, by task ("ps 0").
    cpu: dict[str, float]  # Processor time of each process, in seconds, by task.
    # Pairs of a time, and what all processes and their children had used of the processor by then.
    used: list[tuple[float, float]]

    def cpu_between(self, first: float, last: float) -> float:
        """Returns the processor time of all processes between two times, in seconds."""
        times, seconds = zip(*self.used)
        begin, end = np.interp([first, last], times, seconds)
        return float(end - begin)


def train(
    module: str,
    argv: Sequence[str],
    num_workers: int,
    folder: Path,
    endless: Sequence[str] = (),
    timeout: float = 900.0,
    num_ps: int = 1,
    command: Sequence[str] = (),
) -> Finished:
    """Runs `python -m module`, or a command, as servers and workers, until all have ended.

    Args:
      module: understands the flags of a task of `experiments.mnist`.
      argv: its other arguments.
      num_workers: how many workers.
      folder: takes the output of each process.
      endless: jobs or tasks that only serve, and are ended when all others have.
      timeout: seconds for the whole.
      num_ps: how many parameter servers.
      command: in place of `python -m module`, of a program that does not take over its port.

    Raises:
      FailedError: a process failed, or the time is over.
    """
    deadline = time.monotonic() + timeout
    peaks: dict[str, float] = {}
    cpu: dict[str, float] = {}
    used: list[tuple[float, float]] = []
    with contextlib.ExitStack() as scope:
        cluster = LocalCluster({"ps": num_ps, "worker": num_workers}, inherit=not command)
        scope.enter_context(cluster)
        # The same command lines as those of the launcher, which hides its children's memory.
        commands = launcher.describe(module, argv, cluster)
        if command:  # In place of the first three words.
            commands = [replace(c, argv=(*command, *c.argv[3:])) for c in commands]
        running = {c.name: scope.enter_context(_started(c, folder)) for c in commands}
        cluster.release()
        while running:
            if set(running) <= set(endless):
                for process in running.values():
                    # Not `terminate`, which would wait for a process that has ended.
                    os.kill(process.pid, signal.SIGTERM)
            for name, process in list(running.items()):
                if time.monotonic() > deadline:
                    raise FailedError(f"{module}: {name} still ran after {timeout:g} s")
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid == 0:
                    continue
                del running[name]
                peaks[name] = usage.ru_maxrss / _UNITS_A_MIB
                cpu[name] = usage.ru_utime + usage.ru_stime
                process.returncode = status  # `Popen` must not wait for it again.
                if status != 0 and name not in endless:
                    end = _log(folder, name).read_text(errors="replace")[-2000:]
                    raise FailedError(f"{module}: {name} failed with wait status {status}:\n{end}")
            if not used or time.time() - used[-1][0] > _COUNT_SECS:
                pids = [process.pid for process in running.values()]
                used.append((time.time(), sum(map(cpu_seconds, pids)) + sum(cpu.values())))
            time.sleep(_POLL_SECS)
    output = _log(folder, "worker 0").read_text(errors="replace")
    return Finished(output, peaks, cpu, used)


def launch(module: str, argv: Sequence[str], num_ps: int, num_workers: int) -> str:
    """Runs a module as all tasks of a cluster, forked from one process; returns what they printed.

    Raises:
      FailedError: a task failed.
    """
    out = io.StringIO()
    code = launcher.launch_local(module, argv, num_ps, num_workers, out=out)
    if code != 0:
        raise FailedError(f"{module}: exit code {code}:\n{out.getvalue()[-2000:]}")
    return out.getvalue()


def cpu_seconds(pid: int) -> float:
    """Returns the processor time that a process and its children have used; 0 of one that ended."""
    try:
        process = psutil.Process(pid)
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return sum(each.user + each.system for each in times)


def tasks(pid: int) -> dict[str, psutil.Process]:
    """Returns the tasks of a cluster that a process has started, by name ("ps 0")."""
    found: dict[str, psutil.Process] = {}
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # It has just ended.
            task = re.search(r"--job_name=(\w+) --task_index=(\d+)", " ".join(child.cmdline()))
            if task:
                found.setdefault(f"{task[1]} {task[2]}", child)  # Not what it has started.
    return found


def resident(pid: int) -> dict[str, float]:
    """Returns the resident set of each of these tasks, in MiB."""
    found = {}
    for name, task in tasks(pid).items():
        with contextlib.suppress(psutil.Error):
            found[name] = task.memory_info().rss / (1 << 20)
    return found


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"


@contextlib.contextmanager
def _started(command: Command, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a process; kills what is left of its group when the context is left."""
    with _log(folder, command.name).open("wb") as log:
        process = subprocess.Popen(
            command.argv,
            cwd=str(ROOT),
            env={**os.environ, **command.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=command.pass_fds,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
