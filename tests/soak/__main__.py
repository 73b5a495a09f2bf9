"""A training with a random fault every 20 s, run by `tox -e soak`.

    python -m tests.soak --results=FOLDER --runtime=legacy
    python -m tests.soak --results=FOLDER --page=docs/soak.md

A local cluster of two parameter servers and three workers trains for half an hour. The first leaves
FOLDER/legacy.md; the second writes the page from what is there. Filling a disk needs root, to mount
a small one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, Callable

from tests.experiments.conftest import Record, Training
from tests.experiments.faults.conftest import updates_lost
from tests.experiments.faults.disk import Disk, mounted
from tests.soak.traces import Trace, started

TASKS = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("worker", 2)]
WORKERS = ["worker 0", "worker 1", "worker 2"]
OF_A_TASK = ["SIGKILL", "SIGTERM", "SIGSTOP for 5 s"]
SIGNALS_TO_ALL = {"SIGTERM to all": 143, "SIGHUP to all": 129}  # And the launcher's exit code.
SECOND_START, DISK_FULL = "second start", "disk full"
OF_A_TASK_FOR_ONE_OF_ALL = 4  # Else no task would live long enough to grow.
DISK_MB = 1024
BESIDE = ["launcher", "sender"]  # No task, and not hit; the second is MLflow's.
# Of which others TensorFlow keeps something in a task of the modern runtime, when they were lost.
KEPT = {"ps 0": WORKERS, "ps 1": WORKERS, "worker 0": WORKERS[1:]}
KEPT.update({"worker 1": WORKERS[:1], "worker 2": WORKERS[:1]})
SENDER = "compat.tracking.mlflow.sender"
SENDER_MB = 250.0  # With MLflow, which it loads where trainings leave it a core: for minutes.
EVERY_SECS = 20.0
STOPPED_SECS = 5.0
SAMPLE_SECS = 2.0
CHECKPOINT_EVERY = 50
COMMAND = ["-m", "experiments.mnist", "--strategy=ps", "--num_ps=2", "--num_workers=3"]
COMMAND += ["--dataset=digits", "--max_restarts=1000000", "--max_steps=1000000000"]
COMMAND += ["--log_every=10", "--summary_every=100", f"--checkpoint_every={CHECKPOINT_EVERY}"]
REFUSED = r"error: log folder \S+ is in use by process \d+ on .*; .* choose another log folder\n"
NO_ROOM = r"^(\[worker 0\] )?error: .*No space left on device.*$"
PAGE = """\
# Soak

Written by `tox -e soak`: a cluster of two parameter servers and three workers trains on one
machine, and every {every:g} s something goes wrong, chosen at random. Most often a task is killed
(SIGKILL), asked to end (SIGTERM) or stopped for {stopped:g} s (SIGSTOP); the launcher starts again
what has ended. Or all processes are hit:

- *SIGTERM to all*, *SIGHUP to all*: the launcher, its watchdog, what the tasks are forked from, the
  tasks and what sends the record get the signal at once. The run has to end with 143 or 129.
- *second start*: the same command, in the same log folder. It has to be refused with 2 and a line,
  and the first run trains on.
- *disk full*: the log folder is on a small disk, of which all the room is taken. The run has to end
  with 1, or with 2 if its chief has just been started again, and a line that names the folder; then
  the room is given back. The checkpoint that was due is lost with the updates since the one before.

After an end, which leaves no task running, the same command starts the cluster again, and the run
has to resume. In the end the launcher gets SIGTERM. Memory, threads and descriptors are medians, of
the second and of the last third of the life of a process; of each task the process is shown that
has lived longest. The one that sends the record loads MLflow with what the tasks leave of the
cores: on a busy machine for minutes, in which it grows.

On the modern runtime worker 0 is the coordinator, and is lost with each parameter server. Of a
coordinator that was lost a server of TensorFlow keeps the variables and values for ten minutes, and
some of its threads until it ends itself: with TensorFlow 2.21 and nothing of this project, a
parameter server six of them, a worker twelve. Of a worker that was lost, each parameter server and
the coordinator keep four. By so much they may grow here.
"""
SECTION = """
## {runtime} runtime, {minutes:g} minutes

{faults}. The cluster was started {starts} times.
The run reached step {step}; it was resumed {resumed} times, each time at most {lost} updates before
the last one that was logged ({every} are promised), after a signal to all at most {lost_asked},
after a full disk at most {lost_full}. Exit code {code}, the run of MLflow is {status}, the steps of
TensorBoard increase strictly, nothing was left running.

| task | starts | longest life | memory | threads | descriptors |
|---|---|---|---|---|---|
{rows}
"""


class Soak:
    """One run, each start of its cluster, its faults, and what its processes take.

    Args:
      runtime: of the cluster.
      seed: of the faults.
      folder: where all is made; its log folder is on a small disk, if that can be mounted.
    """

    def __init__(self, runtime: str, seed: int, folder: Path) -> None:
        self._random = random.Random(seed)
        self._folder, self._disk = folder, contextlib.ExitStack()
        self._of_all = [*SIGNALS_TO_ALL, SECOND_START]
        with contextlib.suppress(PermissionError):
            disk = self._disk.enter_context(mounted(folder / "disk", DISK_MB))
            self._small: Disk = disk
            self._of_all.append(DISK_FULL)
        self._logdir = folder / "disk" / "log"
        self._argv = [sys.executable, *COMMAND]
        self._argv += [f"--runtime={runtime}", f"--logdir={self._logdir}"]
        self._training = self._start("run")
        self._said: list[str] = []  # By those that have ended.
        self._traces: dict[tuple[int, str], Trace] = {}
        self._faults: collections.Counter[str] = collections.Counter()
        self._stopped: dict[int, float] = {}
        self._lost: dict[str, list[int]] = collections.defaultdict(list)  # By what hit all.
        self._wrong: list[str] = []

    def _start(self, name: str) -> Training:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        start = partial(Popen, stdin=DEVNULL, start_new_session=True)
        env = {"PYTHONUNBUFFERED": "1"}
        return Training(self._argv, folder, self._logdir, env, start)

    def run(self, secs: float) -> None:
        """Trains so long, with faults, and then ends the training."""
        self._training.wait_until_it_says(r"^\[worker 0\] Step: ")
        end = time.monotonic() + secs
        hit = time.monotonic() + EVERY_SECS
        while time.monotonic() < end:
            assert self._training.offspring(), self._training.out[-3000:]
            self._sample()
            now = time.monotonic()
            for pid in [pid for pid, until in self._stopped.items() if now >= until]:
                del self._stopped[pid]
                self._send(pid, signal.SIGCONT)
            if now >= hit:
                self._hit()
                hit = max(hit, time.monotonic()) + EVERY_SECS
            time.sleep(SAMPLE_SECS)
        for pid in self._stopped:
            self._send(pid, signal.SIGCONT)
        self._training.send(signal.SIGTERM).wait()
        self._said.append(self._training.out)

    def _tasks(self) -> dict[int, str]:
        """Returns the ids of the processes, and what they are."""
        found = {self._training.pid: "launcher"}
        for job, index in TASKS:
            for pid in self._training.offspring(f"--job_name={job}", f"--task_index={index}"):
                found[pid] = f"{job} {index}"
        for pid in self._training.offspring(SENDER):
            found[pid] = "sender"
        return found

    def _sample(self) -> None:
        now = time.monotonic()
        for pid, task in self._tasks().items():
            self._traces.setdefault((pid, started(pid)), Trace(pid, task, now)).sample(now)

    def _hit(self) -> None:
        """Makes one task, or all of them, meet a fault."""
        fault = self._random.choice(OF_A_TASK_FOR_ONE_OF_ALL * OF_A_TASK + self._of_all)
        hit: Callable[[str], str] = self._hit_all if fault in self._of_all else self._hit_a_task
        print(f"{time.strftime('%H:%M:%S')} {fault}", end=" ", flush=True)
        print(hit(fault), flush=True)
        self._faults[fault] += 1

    def _hit_a_task(self, fault: str) -> str:
        tasks = {pid: task for pid, task in self._tasks().items() if task not in BESIDE}
        if not tasks:
            return "to none"
        pid = self._random.choice(sorted(tasks))
        self._send(pid, signal.Signals[fault.split()[0]])
        if fault.startswith("SIGSTOP"):
            self._stopped[pid] = time.monotonic() + STOPPED_SECS
        return f"to {tasks[pid]}"

    def _hit_all(self, fault: str) -> str:
        if fault == SECOND_START:
            second = self._start("second").wait()
            if second.code != 2 or not re.fullmatch(REFUSED, second.err):
                self._wrong.append(f"a second start ended with {second.code}: {second.err}")
            return f"ended with {second.code}"
        if fault == DISK_FULL:
            self._small.fill()
            ended = self._ends(1, 2)  # The latter if the chief has just been started.
            if not re.search(NO_ROOM, ended.out, re.MULTILINE):
                self._wrong.append(f"a full disk is not named: {ended.out[-1000:]}")
            self._small.free()
        else:
            for pid in self._training.offspring():
                self._send(pid, signal.Signals[fault.split()[0]])
            ended = self._ends(SIGNALS_TO_ALL[fault])
        self._training = self._start("run")
        self._training.wait_until_it_says(r"^\[worker 0\] Step: ")
        self._lost[fault] += updates_lost(self._said[-1] + self._training.out)[-1:]
        return f"ended with {ended.code}, {self._lost[fault][-1]} updates lost"

    def _ends(self, *codes: int) -> Training:
        """Waits for the end of the cluster, which leaves none of its tasks."""
        ended = self._training.wait()
        left = sorted({*self._tasks().values()} - {*BESIDE})
        if ended.code not in codes or left:
            self._wrong.append(f"ended with {ended.code}, left {left}: {ended.out[-1000:]}")
        self._said.append(ended.out)
        return ended

    @staticmethod
    def _send(pid: int, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)

    def close(self) -> None:
        """Ends what still runs."""
        self._training.end()
        self._disk.close()

    def section(self, runtime: str, minutes: float) -> tuple[str, list[str]]:
        """Returns what is written of it, and what is wrong."""
        left = self._training.left_running()  # First: the last of the record may still be sent.
        recorded = Record(self._logdir)
        recorded.assert_one_training()
        said = "".join(self._said)
        losses, full = updates_lost(said), self._lost[DISK_FULL]
        promised = collections.Counter(losses) - collections.Counter(full)
        values: dict[str, Any] = {
            "runtime": runtime.capitalize(),
            "minutes": minutes,
            "faults": ", ".join(f"{count} x {name}" for name, count in self._faults.items()),
            "starts": len(self._said),
            "step": recorded.checkpoints[-1],
            "every": CHECKPOINT_EVERY,
            "code": self._training.code,
            "status": recorded.run[1],
            "resumed": len(losses),
            "lost": max(promised, default=0),
            "lost_asked": max(map(max, (self._lost[s] or [0] for s in SIGNALS_TO_ALL))),
            "lost_full": max(full, default=0),
        }
        kept = KEPT if runtime == "modern" else {}
        wrong = self._wrong + [
            f"{trace.task} has grown: {', '.join(_took(trace))}"
            for trace in self._traces.values()
            if not trace.is_flat(
                [peer for peer in self._traces.values() if peer.task in kept.get(trace.task, [])],
                SENDER_MB if trace.task == "sender" else 0.0,
            )
        ]
        if values["lost"] > CHECKPOINT_EVERY or values["lost_full"] > 2 * CHECKPOINT_EVERY:
            wrong.append(f"too many updates were lost: {losses}, after full disks: {full}")
        if (values["code"], values["status"]) != (143, "KILLED"):
            wrong.append(f"ended with {values['code']}, {values['status']}")
        if left:
            wrong.append("something was left running")
        wrong += re.findall(r"^.*Traceback.*$", said, re.MULTILINE)
        names = [*("{} {}".format(*task) for task in TASKS), *BESIDE]
        rows = "\n".join(self._row(name) for name in names)
        return SECTION.format(rows=rows, **values), wrong

    def _row(self, name: str) -> str:
        traces = [trace for trace in self._traces.values() if trace.task == name]
        longest = max(traces, key=lambda trace: trace.secs)
        return f"| {' | '.join([name, str(len(traces)), *_took(longest)])} |"


def _took(trace: Trace) -> list[str]:
    found = trace.settled()
    took = ["too short to tell"] * 3
    if found is not None:
        first, last = found
        took = [f"{first.memory:.0f} to {last.memory:.0f} MB"]
        took += [f"{first.threads} to {last.threads}", f"{first.files} to {last.files}"]
    return [f"{trace.secs:.0f} s", *took]


def soak(runtime: str, minutes: float, seed: int, results: Path) -> list[str]:
    """Runs one, leaves its section, and returns what is wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{runtime}-"))
    print(folder, flush=True)
    with contextlib.closing(Soak(runtime, seed, folder)) as run:
        run.run(60 * minutes)
        section, wrong = run.section(runtime, minutes)
    (results / f"{runtime}.md").write_text(section, encoding="utf-8")
    print(f"{section}\nwrong: {'; '.join(wrong) or 'nothing'}")
    return wrong


def main() -> int:
    """Returns 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--runtime", choices=("legacy", "modern"))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    wrong = []
    if args.runtime:
        wrong = soak(args.runtime, args.minutes, args.seed, args.results)
    if args.page:
        sections = [path.read_text("utf-8") for path in sorted(args.results.glob("*.md"))]
        text = PAGE.format(every=EVERY_SECS, stopped=STOPPED_SECS) + "".join(sections)
        args.page.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
