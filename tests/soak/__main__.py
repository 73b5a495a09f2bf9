"""A training with a random fault every 20 s: `python -m tests.soak PAGE`, run by `tox -e soak`.

A local cluster of two parameter servers and three workers, first on the legacy runtime, then on the
modern one, each half an hour. What was seen is written to PAGE, docs/soak.md.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

from tests.experiments.conftest import Record, Training
from tests.experiments.faults.conftest import updates_lost
from tests.soak.traces import Trace, started

TASKS = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("worker", 2)]
WORKERS = ["worker 0", "worker 1", "worker 2"]
FAULTS = ["SIGKILL", "SIGTERM", "SIGSTOP for 5 s"]
BESIDE = ["launcher", "sender"]  # No task, and not hit; the second is MLflow's.
# Of which others TensorFlow keeps something in a task of the modern runtime, when they were lost.
KEPT = {"ps 0": WORKERS, "ps 1": WORKERS, "worker 0": WORKERS[1:]}
KEPT.update({"worker 1": WORKERS[:1], "worker 2": WORKERS[:1]})
SENDER = "compat.tracking.mlflow.sender"
EVERY_SECS = 20.0
STOPPED_SECS = 5.0
SAMPLE_SECS = 2.0
CHECKPOINT_EVERY = 50
COMMAND = ["-m", "experiments.mnist", "--strategy=ps", "--num_ps=2", "--num_workers=3"]
COMMAND += ["--dataset=digits", "--max_restarts=1000000", "--max_steps=1000000000"]
COMMAND += ["--log_every=10", "--summary_every=100", f"--checkpoint_every={CHECKPOINT_EVERY}"]
PAGE = """\
# Soak

Written by `tox -e soak`: a cluster of two parameter servers and three workers trains on one
machine, and every {every:g} s a task that is chosen at random is killed (SIGKILL), asked to end
(SIGTERM) or stopped for {stopped:g} s (SIGSTOP); the launcher starts again what has ended. In the
end the launcher gets SIGTERM. Memory, threads and descriptors are medians, of the second and of the
last third of the life of a process; of each task the process is shown that has lived longest.

On the modern runtime worker 0 is the coordinator, and is lost with each parameter server. Of a
coordinator that was lost a server of TensorFlow keeps the variables and values for ten minutes, and
some of its threads until it ends itself: with TensorFlow 2.21 and nothing of this project, a
parameter server six of them, a worker twelve. Of a worker that was lost, each parameter server and
the coordinator keep four. By so much they may grow here.
"""
SECTION = """
## {runtime} runtime, {minutes:g} minutes

{faults}. The run reached step {step}; it was resumed {resumed} times, each time at most
{lost} updates before the last one that was logged ({every} are promised). Exit code {code}, the run
of MLflow is {status}, TensorBoard's steps increase strictly, nothing was left running.

| task | starts | longest life | memory | threads | descriptors |
|---|---|---|---|---|---|
{rows}
"""


class Soak:
    """One training, its faults, and what its processes take."""

    def __init__(self, runtime: str, seed: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        self._random = random.Random(seed)
        self._logdir = folder / "log"
        argv = [sys.executable, *COMMAND, f"--runtime={runtime}", f"--logdir={self._logdir}"]
        env = {"PYTHONUNBUFFERED": "1"}
        start = partial(Popen, stdin=DEVNULL, start_new_session=True)
        self._training = Training(argv, folder, self._logdir, env, start)
        self._traces: dict[tuple[int, str], Trace] = {}
        self._faults: collections.Counter[str] = collections.Counter()
        self._stopped: dict[int, float] = {}

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
                hit += EVERY_SECS
                self._hit()
            time.sleep(SAMPLE_SECS)
        for pid in self._stopped:
            self._send(pid, signal.SIGCONT)
        self._training.send(signal.SIGTERM).wait()

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
        """Has one task of those that run now meet a fault."""
        tasks = {pid: task for pid, task in self._tasks().items() if task not in BESIDE}
        if not tasks:
            return
        pid = self._random.choice(sorted(tasks))
        fault = self._random.choice(FAULTS)
        self._send(pid, signal.Signals[fault.split()[0]])
        if fault.startswith("SIGSTOP"):
            self._stopped[pid] = time.monotonic() + STOPPED_SECS
        self._faults[fault] += 1
        print(f"{fault} to {tasks[pid]}", flush=True)

    @staticmethod
    def _send(pid: int, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)

    def close(self) -> None:
        """Ends what still runs."""
        self._training.end()

    def section(self, runtime: str, minutes: float) -> tuple[str, list[str]]:
        """Returns what is written of it, and what is wrong."""
        left = self._training.left_running()  # First: the last of the record may still be sent.
        recorded = Record(self._logdir)
        recorded.assert_one_training()
        values: dict[str, Any] = {
            "runtime": runtime.capitalize(),
            "minutes": minutes,
            "faults": ", ".join(f"{count} x {name}" for name, count in self._faults.items()),
            "step": recorded.checkpoints[-1],
            "every": CHECKPOINT_EVERY,
            "code": self._training.code,
            "status": recorded.run[1],
        }
        losses = updates_lost(self._training.out)
        values.update(resumed=len(losses), lost=max(losses, default=0))
        kept = KEPT if runtime == "modern" else {}
        wrong = [
            f"{trace.task} has grown: {', '.join(_took(trace))}"
            for trace in self._traces.values()
            if not trace.is_flat(
                [peer for peer in self._traces.values() if peer.task in kept.get(trace.task, [])]
            )
        ]
        if values["lost"] > CHECKPOINT_EVERY:
            wrong.append(f"{values['lost']} updates were lost")
        if (values["code"], values["status"]) != (143, "KILLED"):
            wrong.append(f"ended with {values['code']}, {values['status']}")
        if left:
            wrong.append("something was left running")
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


def main() -> int:
    """Runs both; returns 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("page", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    text, wrong = PAGE.format(every=EVERY_SECS, stopped=STOPPED_SECS), []
    for runtime in ("legacy", "modern"):
        with contextlib.closing(Soak(runtime, args.seed)) as soak:
            soak.run(60 * args.minutes)
            section, found = soak.section(runtime, args.minutes)
        text += section
        wrong += [f"{runtime}: {what}" for what in found]
    args.page.write_text(text, encoding="utf-8")
    print(f"{args.page}: wrong: {'; '.join(wrong) or 'nothing'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
