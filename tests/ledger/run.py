"""A cluster of `program.py`, one task of which meets a fault now and then."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator

from compat.doctor import constraints
from compat.errors import is_retryable
from tests.conftest import STARTING, Cluster, Process
from tests.experiments.faults.test_network_cut import Hosts
from tests.ledger.check import Loss, check

PROGRAM = Path(__file__).with_name("program.py")
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]
COUNT = 5
SAVE_EVERY_SECS = 10.0
PATIENCE_SECS = 15.0
PAUSE_SECS = 0.05
_MOST_PER_SEC = 400
_RESTART_SECS = 1.0
_END_SECS = 180.0
# Of each length one that is waited for, and one that is not.
FAULTS = ["SIGKILL", "SIGSTOP for 5 s", "SIGSTOP for 25 s"]
CUTS = ["network cut for 5 s", "network cut for 25 s"]


class Run:
    """A cluster whose tasks are started again when they are lost.

    Args:
      runtime: of the cluster.
      folder: for journals, checkpoints, and what the tasks print.
      capacity: of the ledger.
      hosts: where each task has a host of its own, which can be cut off.
    """

    def __init__(self, runtime: str, folder: Path, capacity: int, hosts: Hosts | None) -> None:
        self.folder = folder
        self.wrong: list[str] = []
        self.losses: list[Loss] = []
        self._hosts = hosts
        self._settings: dict[str, Any] = {
            "folder": str(folder),
            "capacity": capacity,
            "count": COUNT,
        }
        self._settings.update(pause=PAUSE_SECS, save_every=SAVE_EVERY_SECS, patience=PATIENCE_SECS)
        self._settings["trainers"] = self.trainers = 2 if runtime == "legacy" else 1
        jobs = {} if hosts else {"ps": 1, "worker": 2}
        self._cluster = Cluster(PROGRAM, runtime, folder / "tasks", jobs)
        self._networks: dict[tuple[str, int], str] = {}
        if hosts is not None:
            for number, (job, index) in enumerate(TASKS, 1):
                inside = hosts.add(f"{job}{index}", f"10.0.0.{number}")
                self._networks[job, index] = inside[-1]
                self._cluster.addresses.setdefault(job, []).append(f"10.0.0.{number}:2222")
        self._running = {task: self._start(task) for task in TASKS}
        self._restarts: dict[tuple[str, int], float] = {}

    def _start(self, task: tuple[str, int], again: bool = False) -> Process:
        settings = dict(self._settings)
        if self._hosts:
            settings["network"] = self._networks[task]
        start = self._cluster.restart if self._hosts or again else self._cluster.start
        return start(*task, **settings)

    def supervise(self) -> None:
        """Starts again, after a second, what has ended in a way that may pass."""
        for task, process in self._running.items():
            if not _has_ended(process):
                continue
            now = time.monotonic()
            due = self._restarts.setdefault(task, now + _RESTART_SECS)
            if now < due:
                continue
            del self._restarts[task]
            if not (process.code < 0 or is_retryable(process.code)):
                said = (process.complaints.strip().splitlines() or [""])[-1]
                self.wrong.append("{} {} ended with {}: {}".format(*task, process.code, said))
            self._running[task] = self._start(task, again=True)

    def train(self, secs: float, hit: Callable[[], float] = lambda: float("inf")) -> None:
        """Trains for so long; `hit` is called at the time that it has returned last."""
        end, due = time.monotonic() + secs, time.monotonic()
        while time.monotonic() < end:
            self.supervise()
            if time.monotonic() >= due:
                due = hit()
            time.sleep(0.1)

    def wait_for_updates(self) -> None:
        """Waits until each client has had an answer since now."""
        since, deadline = time.monotonic(), time.monotonic() + _END_SECS
        for journal in [self.folder / f"trainer-{i}.journal" for i in range(self.trainers)]:
            while _last_answer(journal) < since:
                assert time.monotonic() < deadline, f"{journal}: no update in {_END_SECS} s"
                self.train(0.2)

    def end(self) -> None:
        """Ends the run, once all are well."""
        self.wait_for_updates()
        (self.folder / "stop").touch()
        deadline = time.monotonic() + _END_SECS
        while not all(_has_ended(p) and p.code == 0 for p in self._running.values()):
            assert time.monotonic() < deadline, f"the run did not end in {_END_SECS} s"
            if any(_has_ended(p) and p.code for p in self._running.values()):
                self.supervise()  # Those that have ended with 0 find that they may again.
            time.sleep(0.1)

    def hit(self, task: tuple[str, int], fault: str) -> Callable[[], None]:
        """Has a task meet a fault; returns what ends that."""
        process, start = self._running[task], time.monotonic()
        name = "{} {}".format(*task)
        print(f"{time.strftime('%H:%M:%S')} {fault} to {name}", flush=True)
        host = "{}{}".format(*task)
        if fault.startswith("network"):
            assert self._hosts is not None
            self._hosts.cut(host)
        else:
            process.send(signal.Signals[fault.split()[0]])

        def lift() -> None:
            if fault.startswith("network"):
                assert self._hosts is not None
                self._hosts.join(host)
            elif fault.startswith("SIGSTOP"):
                process.send(signal.SIGCONT)
            self.losses.append(Loss(name, fault, start, time.monotonic()))

        return lift

    def close(self) -> None:
        """Ends what still runs."""
        self._cluster.end()


def _has_ended(process: Process) -> bool:
    return hasattr(process, "code")


def _last_answer(journal: Path) -> float:
    if not journal.exists():
        return 0.0
    with journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - 4000))
        lines = [line.split() for line in file.read().decode().splitlines()[1:]]
    return max((float(line[0]) for line in lines if line[1:2] == ["done"]), default=0.0)


@contextlib.contextmanager
def _hosts() -> Iterator[Hosts | None]:
    try:
        made = Hosts()
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    with contextlib.closing(made):
        yield made


def _at_random(run: Run, every: float, choice: random.Random, faults: list[str]) -> Any:
    """Returns what hits tasks at random, one at a time, and what ends the last fault."""
    lifting: list[tuple[float, Callable[[], None]]] = []

    def lift() -> None:
        while lifting:
            lifting.pop()[1]()

    def hit() -> float:
        now = time.monotonic()
        if lifting:
            lift()
            return now + every
        fault = choice.choice(faults)
        lasting = float(fault.split()[-2]) if " for " in fault else 0.0
        lifting.append((now, run.hit(choice.choice(TASKS), fault)))
        return now + lasting

    return hit, lift


def measure(runtime: str, minutes: float, every: float, seed: int) -> dict[str, Any]:
    """Returns what is told of a run with faults, and how fast one without was."""
    with _hosts() as hosts:
        faults = FAULTS + CUTS * bool(hosts)
        calm = _measure(runtime, min(180.0, minutes * 6), hosts, None)
    with _hosts() as hosts:
        hit = every, random.Random(seed), faults
        found = _measure(runtime, minutes * 60, hosts, hit)
    for server in STARTING["FORK_SERVERS"].values():
        server.close()
    found["wrong"] += [f"without faults: {line}" for line in calm["wrong"]]
    found.update(every=every, count=COUNT, save_every=SAVE_EVERY_SECS)
    return {**found, "rate": calm["step"] / calm["secs"]}


def _measure(runtime: str, secs: float, hosts: Hosts | None, faults: Any) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix=f"ledger-{runtime}-"))
    print(f"{folder}", flush=True)
    run = Run(runtime, folder, int(1000 + (secs + _END_SECS) * _MOST_PER_SEC), hosts)
    with contextlib.closing(run):
        run.wait_for_updates()
        begin = time.monotonic()
        if faults is None:
            run.train(secs)
        else:
            hit, lift = _at_random(run, faults[0], *faults[1:])
            first = begin + faults[0]
            run.train(secs, lambda: hit() if time.monotonic() >= first else first)
            lift()
        run.end()
        elapsed = time.monotonic() - begin
    result = check(folder, runtime, run.trainers, run.losses)
    return {
        **result._asdict(),
        "wrong": run.wrong + result.wrong,
        "runtime": runtime,
        "tensorflow": constraints.version("tensorflow"),
        "secs": elapsed,
        "faults": [[loss.task, loss.what] for loss in run.losses],
        "folder": str(folder),
    }
