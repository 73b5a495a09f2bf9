"""A cluster of `program.py`, of which a task, or all, meet a fault now and then."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator

from compat.doctor import constraints
from compat.errors import is_retryable
from tests.conftest import STARTING, Cluster, Process
from tests.experiments.faults.disk import Disk, mounted
from tests.experiments.faults.test_network_cut import Hosts
from tests.ledger.check import Loss, check

PROGRAM = Path(__file__).with_name("program.py")
CHIEF = ("worker", 0)
TASKS = [("ps", 0), CHIEF, ("worker", 1)]
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
TO_ALL, SECOND_START = ["SIGTERM to all", "SIGHUP to all"], "second start"
DISK_FULL, DISK_MB = "disk full for 25 s", 64  # So that a checkpoint is due, and fails.
_REFUSED = r"error: log folder \S+ is in use by process \d+ on .*"
_NO_ROOM = re.compile("error: .* cannot be written .*No space left on device")


class Run:
    """A cluster whose tasks are started again when they are lost.

    Args:
      runtime: of the cluster.
      folder: for journals, checkpoints, and what the tasks print.
      capacity: of the ledger.
      hosts: where each task has a host of its own, which can be cut off.
      disk: where checkpoints have a disk of their own, which can be filled.

    Attributes:
      faults: what has been hit by what.
      losses: of tasks, by these.
      wrong: what has ended otherwise than promised.
    """

    def __init__(
        self, runtime: str, folder: Path, capacity: int, hosts: Hosts | None, disk: Disk | None
    ) -> None:
        self.folder = folder
        self.wrong: list[str] = []
        self.faults: list[tuple[str, str]] = []
        self.losses: list[Loss] = []
        self._hosts, self._disk, self._is_full = hosts, disk, False
        self._runtime = runtime
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
        self._restarts: dict[tuple[str, int], float] = {}  # When, of those that have ended.

    def _start(self, task: tuple[str, int], again: bool = False) -> Process:
        settings = dict(self._settings)
        if self._hosts:
            settings["network"] = self._networks[task]
        start = self._cluster.restart if self._hosts or again else self._cluster.start
        return start(*task, **settings)

    def supervise(self) -> None:
        """Starts again, after a second, what has ended; what has no room, when there is some."""
        for task, process in self._running.items():
            if not _has_ended(process):
                continue
            now = time.monotonic()
            if task not in self._restarts:
                self._restarts[task] = now + _RESTART_SECS
                self._judge(task, process)
            waits = self._is_full and process.code in (0, 1)
            if now >= self._restarts[task] and not waits:
                del self._restarts[task]
                self._running[task] = self._start(task, again=True)

    def _judge(self, task: tuple[str, int], process: Process) -> None:
        """Sees that a task has ended in a way that may pass, or because the disk is full.

        That ends the chief with 1, which is the end of the run, and of those that serve it.
        """
        said = (process.complaints.strip().splitlines() or [""])[-1]
        without_room = task == CHIEF and process.code == 1 and _NO_ROOM.search(said)
        is_over = (self.folder / "stop").exists() or (self._is_full and task != CHIEF)
        if not (
            process.code < 0
            or is_retryable(process.code)
            or without_room
            or (is_over and process.code == 0)
        ):
            self.wrong.append("{} {} ended with {}: {}".format(*task, process.code, said))

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
        """Makes a task, or all, meet a fault; returns what ends that."""
        start, lifting, hit = time.monotonic(), contextlib.ExitStack(), [task]
        if fault == SECOND_START:
            hit = []
            self._start_second()
        elif fault in TO_ALL:
            hit = TASKS
            for process in self._running.values():
                process.send(signal.Signals[fault.split()[0]])
        elif fault == DISK_FULL:
            assert self._disk is not None
            hit = [CHIEF]
            lifting.callback(self._free)
            self._is_full = True
            self._disk.fill()
        elif fault.startswith("network"):
            assert self._hosts is not None
            host = "{}{}".format(*task)
            lifting.callback(self._hosts.join, host)
            self._hosts.cut(host)
        else:
            lifting.callback(self._running[task].send, signal.SIGCONT)
            self._running[task].send(signal.Signals[fault.split()[0]])
        names = ["{} {}".format(*one) for one in hit]
        print(f"{time.strftime('%H:%M:%S')} {fault}: {', '.join(names)}", flush=True)
        self.faults.append(("" if len(hit) != 1 or fault == DISK_FULL else names[0], fault))

        def end() -> None:
            lifting.close()
            self.losses += [Loss(name, fault, start, time.monotonic()) for name in names]

        return end

    def _free(self) -> None:
        assert self._disk is not None
        self._disk.free()
        self._is_full = False

    def _start_second(self) -> None:
        """Starts a run in the same log folder while the chief holds it; that must not be."""
        self.wait_for_updates()
        settings = {**self._settings, "runtime": self._runtime, "journal": "second"}
        folder = self.folder / "tasks" / f"second-{len(self.faults)}"
        second, deadline = Process(PROGRAM, settings, folder, {}), time.monotonic() + _END_SECS
        try:
            while not _has_ended(second):
                assert time.monotonic() < deadline, f"a second start ran {_END_SECS} s"
                self.train(0.2)
        finally:
            second.send(signal.SIGKILL)
        said = second.complaints.strip()
        if second.code != 2 or not re.fullmatch(_REFUSED, said):
            self.wrong.append(f"a second start ended with {second.code}: {said}")

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
        faults = [*FAULTS, *TO_ALL, SECOND_START] + CUTS * bool(hosts)
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
    capacity = int(1000 + (secs + _END_SECS) * _MOST_PER_SEC)
    with contextlib.ExitStack() as stack:
        disk = None
        with contextlib.suppress(PermissionError):
            disk = stack.enter_context(mounted(folder / "log", DISK_MB))
        run = stack.enter_context(contextlib.closing(Run(runtime, folder, capacity, hosts, disk)))
        run.wait_for_updates()
        begin = time.monotonic()
        if faults is None:
            run.train(secs)
        else:
            every, choice, kinds = faults
            hit, lift = _at_random(run, every, choice, kinds + [DISK_FULL] * bool(disk))
            first = begin + every
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
        "faults": run.faults,
        "folder": str(folder),
    }
