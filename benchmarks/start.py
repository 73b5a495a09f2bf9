"""How long a cluster takes from the command to its first updates, and `--help` of each command.

    python -m benchmarks.start --rounds=5

One parameter server and two workers of the network of `experiments.mnist`: three processes of a
program by hand, and what starts a cluster by one command. All are measured in turn. Time ends when
the chief reports an update on the legacy runtime, and the first 50 on the modern one, which the
program by hand makes one by one. CPU seconds are those of all processes until then.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Iterator, Sequence

import psutil

from benchmarks import table
from benchmarks.trainings import ROOT, FailedError
from compat.processes.local_cluster import LocalCluster
from experiments.launching import launcher

_COUNTS = {"ps": 1, "worker": 2}
_UPDATES = {"legacy": 1, "modern": 50}  # After which the clock stops, at the earliest.
_TASK_ARGS = "--job_name={job} --task_index={index} --ps_hosts={ps} --worker_hosts={worker}"
_DEADLINE_SECS = 300.0
_POLL_SECS = 0.02
_COMMANDS = ("experiments.mnist", "experiments.launch", "experiments.sweep", "compat", "compat run")
HEADER = ["runtime", "started by", "wall s", "CPU s", "wall, to by hand", "CPU, to by hand"]
HELP_HEADER = ["--help of", "wall s more than absl alone", "CPU s"]
_ABSL = "from absl import app, flags"


@dataclass(frozen=True)
class Start:
    """What it took until the first update, or until the end of `--help`, in seconds."""

    wall: float
    cpu: float


def by_hand(runtime: str, folder: str) -> Start:
    """Measures a process for each task, started at the same time."""
    twin = f"benchmarks.updates.twin_{runtime}"
    with LocalCluster(_COUNTS) as cluster:
        commands = launcher.describe(twin, _twin_flags(runtime), cluster)
        cluster.release()
        return measured([command.argv for command in commands], '"times"', folder)


def launched(runtime: str, folder: str) -> Start:
    """Measures the same program, started by `experiments.launch`."""
    module = [
        "--flags=hosts",
        "--",
        "-m",
        f"benchmarks.updates.twin_{runtime}",
        *_twin_flags(runtime),
    ]
    return measured([_python("experiments.launch", *module)], '"times"', folder)


def scripted(runtime: str, folder: str) -> Start:
    """Measures the same program, of the legacy runtime, under `compat run --cluster`."""
    twin = str(ROOT / "benchmarks" / "updates" / f"twin_{runtime}.py")
    options = ["--cluster=ps=1,worker=2", f"--task_args={_TASK_ARGS}"]
    command = _python("compat", "run", *options, twin, *_twin_flags(runtime))
    return measured([command], '"times"', folder)


def experiment(runtime: str, folder: str) -> Start:
    """Measures `experiments.mnist`, which also logs, tracks and evaluates."""
    argv = ["--strategy=ps", "--num_ps=1", "--num_workers=2", f"--runtime={runtime}"]
    # A line comes after so many updates of each worker.
    every = max(1, _UPDATES[runtime] // _COUNTS["worker"])
    argv += [f"--log_every={every}", f"--logdir={folder}/run"]
    return measured([_python("experiments.mnist", *argv)], "Step:", folder)


def helped(module: str) -> Start:
    """Measures `--help` of a command; for an empty one the import of absl."""
    started, before = time.monotonic(), _of_ended()
    argv = [sys.executable, "-c", _ABSL] if not module else _python(*module.split(), "--help")
    subprocess.run(argv, stdout=subprocess.DEVNULL, cwd=str(ROOT), check=True)
    return Start(time.monotonic() - started, _of_ended() - before)


SIDES = {
    "three processes by hand": by_hand,
    "experiments.launch": launched,
    "compat run --cluster": scripted,
    "experiments.mnist": experiment,
}


def _python(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def _twin_flags(runtime: str) -> list[str]:
    return [
        f"--max_steps={_UPDATES[runtime]}",
        f"--warm_up={_UPDATES[runtime]}",
        "--dataset=auto",
    ]


def measured(commands: Sequence[Sequence[str]], sign: str, folder: str) -> Start:
    """Starts commands, and ends all of their processes when one has printed `sign`.

    Raises:
      FailedError: a command failed, all have ended, or the time is over, without it.
    """
    output = Path(folder, "output")
    started, before = time.monotonic(), _of_ended()
    with _running(commands, output) as processes:
        while True:
            end = _end_of(processes)  # Before the output is read, which is whole by then.
            text = output.read_text(errors="replace")
            if sign in text:
                break
            if not end and time.monotonic() - started > _DEADLINE_SECS:
                end = f"{processes[0].args!r} took more than {_DEADLINE_SECS:g} s"
            if end:
                raise FailedError(
                    f"{end}, and {sign!r} is not in what was printed:\n{text[-2000:]}"
                )
            time.sleep(_POLL_SECS)
        wall = time.monotonic() - started
        return Start(wall, sum(map(_cpu_seconds, _family(processes))) + _of_ended() - before)


def _end_of(processes: Sequence[subprocess.Popen[bytes]]) -> str:
    """Returns which process has failed, or that all have ended; empty while they run."""
    for process in processes:
        if process.poll():
            return f"{process.args!r} failed with code {process.returncode}"
    return "" if None in [process.returncode for process in processes] else "all commands ended"


@contextlib.contextmanager
def _running(
    commands: Sequence[Sequence[str]], output: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    try:
        with output.open("ab") as file:
            for command in commands:
                process = subprocess.Popen(
                    command,
                    cwd=output.parent,  # Where MLflow's store is made.
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                )
                processes.append(process)
        yield processes
    finally:
        for process in _family(processes):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for process in processes:
            process.wait()


def _family(processes: Sequence[subprocess.Popen[bytes]]) -> list[psutil.Process]:
    """Returns the processes that have not been waited for, with all that they have started."""
    found = []
    for process in processes:
        if process.returncode is None:
            head = psutil.Process(process.pid)
            found += [*head.children(recursive=True), head]
    return found


def _of_ended() -> float:
    """Returns the CPU seconds of all processes that this one has started and waited for."""
    times = os.times()
    return times.children_user + times.children_system


def _cpu_seconds(process: psutil.Process) -> float:
    """Returns the CPU seconds of a process, and of those of its children that have ended."""
    try:
        used = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return used.user + used.system + used.children_user + used.children_system


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, and prints the tables; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runtimes", default="legacy,modern")
    flags = parser.parse_args(argv)
    print(table.head(HEADER))
    for runtime in filter(None, flags.runtimes.split(",")):
        sides = {k: v for k, v in SIDES.items() if v is not scripted or runtime == "legacy"}
        found: dict[str, list[Start]] = {name: [] for name in sides}
        for _ in range(flags.rounds):
            for name, side in sides.items():
                with tempfile.TemporaryDirectory() as folder:
                    found[name].append(side(runtime, folder))
                print(runtime, name, found[name][-1], file=sys.stderr, flush=True)
        hand = found["three processes by hand"]
        for name, starts in found.items():
            walls = [s.wall / h.wall for s, h in zip(starts, hand)]
            cpus = [s.cpu / h.cpu for s, h in zip(starts, hand)]
            cells = [
                f"{median(s.wall for s in starts):.1f}",
                f"{median(s.cpu for s in starts):.1f}",
            ]
            cells += [f"{median(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in (walls, cpus)]
            print(table.line([runtime, name, *cells]), flush=True)
    times = {name: [helped(name) for _ in range(flags.rounds)] for name in ("", *_COMMANDS)}
    print(f"\n{table.head(HELP_HEADER)}")
    for name in _COMMANDS:
        walls = [mine.wall - bare.wall for mine, bare in zip(times[name], times[""])]
        cpus = [mine.cpu - bare.cpu for mine, bare in zip(times[name], times[""])]
        print(table.line([name, f"{median(walls):.2f}", f"{median(cpus):.2f}"]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FailedError as error:
        sys.exit(f"error: {error}")
