"""Trainings by `python -m experiments.mnist`, as users start them, and what they leave behind.

There is one real training of each shape on each runtime, for a whole session and at the same time,
and many small tests look at it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from compat.cluster import ports
from compat.tracking.mlflow.spool import store
from compat.tracking.tensorboard.eventfile import event_files, read_events
from experiments.training.recording.curve_tags import name_of
from tests.conftest import PACKAGES

Train = Callable[..., "Training"]
DEADLINE_SECS = 200.0
_PRIVATE = ("HOME", "XDG_CACHE_HOME", "KERAS_HOME")
_DROPPED = ("MNIST_DATA_DIR", "MLFLOW_TRACKING_URI", "TF_CONFIG", "PYTHONUNBUFFERED")
_DROPPED += ("TF_CPP_MIN_LOG_LEVEL",)  # jax sets it here, where TensorFlow 2.12 loads that.


def _environment(folder: Path) -> dict[str, str]:
    """Returns ours, without proxies, and what says where data are or whose cluster this is."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    kept.update({name: str(folder.parent / "home") for name in _PRIVATE})
    kept.update(PYTHONPATH=PACKAGES, MLFLOW_DISABLE_TELEMETRY="true")
    return {name: value for name, value in kept.items() if name not in _DROPPED}


class Training:
    """A command that was started in a process group of its own; made by `start`.

    Attributes:
      folder: where it works.
      code, ended: how it ended, negative for a signal, and when, by `time.time`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        logdir: Path | None,
        env: Mapping[str, str],
        start: Callable[..., Any],
        **options: Any,
    ) -> None:
        self.folder, self._logdir = folder, logdir
        self._name = " ".join(argv[1:])
        self.environment = {**_environment(folder), **env}
        self._stdout, self._stderr = folder / "stdout", folder / "stderr"
        with self._stdout.open("wb") as out, self._stderr.open("wb") as err:
            options = {"stdout": out, "stderr": err, **options}
            self._process = start(argv, cwd=folder, env=self.environment, **options)
        self.pid = self._process.pid
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        self.code = self._process.wait()
        self.ended = time.time()
        self._over.set()

    @property
    def logdir(self) -> Path:
        """Its log folder: the one that was named, or that it has made itself."""
        return self._logdir or next(self.folder.glob("runs/mnist-*"))

    @property
    def out(self) -> str:
        """Its standard output so far."""
        return self._stdout.read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        """Its standard error so far."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def wait(self, seconds: float = DEADLINE_SECS) -> Training:
        """Waits for the end."""
        assert self._over.wait(seconds), f"{self._name} ran {seconds} s: {self.out}{self.err}"
        return self

    def wait_until_it_says(self, pattern: str) -> Training:
        """Waits until its standard output matches."""
        deadline = time.monotonic() + DEADLINE_SECS
        while not re.search(pattern, self.out, re.MULTILINE):
            assert not self._over.is_set(), f"{self._name} ended: {self.out} {self.err}"
            assert time.monotonic() < deadline, f"{self._name} never said {pattern}: {self.out}"
            time.sleep(0.02)
        return self

    def send(self, signum: int) -> Training:
        """Sends a signal to the process that was started, and to no other."""
        assert not self._over.is_set(), f"{self._name} ended: {self.out} {self.err}"
        os.kill(self.pid, signum)
        return self

    def offspring(self, *flags: str) -> list[int]:
        """Returns the ids of what it started and runs, itself included, that have all `flags`."""
        # Where all of that works, and nothing else; the sender of the record in a folder below.
        found, folder = [], f"{self.folder.resolve()}/"
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_own = int(process.name) == self.pid and not self._over.is_set()
                argv = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                is_there = is_own or f"{os.readlink(str(process / 'cwd'))}/".startswith(folder)
                if is_there and set(flags) <= set(argv):
                    found.append(int(process.name))
        return found

    def left_running(self) -> list[int]:
        """Returns what runs long after its end; best nothing. Sending the record may take long."""
        deadline = time.monotonic() + 150
        while self.wait().offspring() and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.offspring()

    def end(self) -> None:
        """Ends what still runs, by its id."""
        for pid in self.offspring():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Record:
    """What a training has recorded, as it is on the disk.

    Attributes:
      event_files: paths of TensorBoard's files, oldest first.
      events: all their events, in the order in which TensorBoard reads them.
      points: by name, the step and the value (a `Summary.Value`) of each point, as written.
      tags: the names in TensorBoard, where those of curves are others.
      checkpoints: the steps of which there is a whole checkpoint, ascending.
    """

    def __init__(self, logdir: Path) -> None:
        self._store = (store(str(logdir)) or "").partition(":///")[2]
        self.event_files = event_files(str(logdir))
        self.events = [event for path in self.event_files for _, event in read_events(path)]
        self.points: dict[str, list[tuple[int, Any]]] = {}
        for event in self.events:
            for value in event.summary.value:
                self.points.setdefault(name_of(value.tag), []).append((event.step, value))
        self.tags = {value.tag for event in self.events for value in event.summary.value}
        indices = logdir.glob("model.ckpt-*.index")
        self.checkpoints = sorted(int(path.stem.split("-")[1]) for path in indices)

    def select(self, query: str, store: Path | None = None) -> list[tuple[Any, ...]]:
        """Returns the rows of a query to MLflow's database."""
        with contextlib.closing(sqlite3.connect(str(store or self._store))) as connection:
            return connection.execute(query).fetchall()

    def assert_one_training(self) -> None:
        """Asserts that the event files, taken together, are those of a training never cut."""
        assert len([event for event in self.events if event.HasField("graph_def")]) == 1
        for tag, points in self.points.items():
            assert all(before < after for (before, _), (after, _) in zip(points, points[1:])), tag

    @property
    def run(self) -> tuple[str, str]:
        """Id and status of MLflow's run, of which there must be one."""
        (run,) = self.select("select run_uuid, status from runs")
        return str(run[0]), str(run[1])


class Tasks:
    """The tasks of one cluster, started one by one, on ports that are reserved until then."""

    def __init__(self, train: Callable[..., Training], **jobs: int) -> None:
        self._train = train
        self._ports = {(job, i): ports.reserve() for job in jobs for i in range(jobs[job])}
        self.hosts = {
            job: [self._ports[job, i].address for i in range(tasks)] for job, tasks in jobs.items()
        }

    def start(self, job: str, index: int, *flags: str, **options: Any) -> Training:
        """Starts a task with the flags of the card of 2016, or, if it is in `env`, by TF_CONFIG."""
        reservation = self._ports[job, index]
        kept = reservation.share()  # Else another process may take the port before a restart.
        env, pass_fds = reservation.pass_to_child()
        options["env"] = {**options.get("env", {}), **env}
        if "TF_CONFIG" not in options["env"]:
            hosts = [f"--{job}_hosts={','.join(found)}" for job, found in self.hosts.items()]
            flags = (f"--job_name={job}", f"--task_index={index}", *hosts, *flags)
        strategy = f"--strategy={options.pop('strategy', 'ps')}"
        training = self._train(strategy, *flags, pass_fds=pass_fds, **options)
        if not kept:
            reservation.release()
        return training


@contextlib.contextmanager
def ending(trainings: list[Training]) -> Iterator[None]:
    """Ends what is added to `trainings` inside the context and still runs when it is left."""
    before = len(trainings)
    try:
        yield
    finally:
        for training in trainings[before:]:
            training.end()


@pytest.fixture(scope="session")
def started() -> Iterator[list[Training]]:
    """What `start` has started."""
    trainings: list[Training] = []
    with ending(trainings):
        yield trainings


@pytest.fixture(autouse=True)
def _end_what_the_test_started(started: list[Training]) -> Iterator[None]:
    """Ends what a test that failed has left, which would take the machine from those that follow.

    What tests share is started before, by fixtures of a wider scope.
    """
    with ending(started):
        yield


@pytest.fixture(scope="session")
def start(
    tmp_path_factory: pytest.TempPathFactory,
    start_program: Callable[..., Any],
    started: list[Training],
) -> Train:
    """Starts `python -m experiments.mnist`, or a `module`, by `within`, in an empty folder."""

    def begin(
        *flags: str,
        module: str = "experiments.mnist",
        logdir: Path | None = None,
        env: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
        files: Sequence[Path] = (),
        **options: Any,
    ) -> Training:
        folder: Path = tmp_path_factory.mktemp("training")
        for file in files:
            shutil.copy(str(file), str(folder))
        argv = [*within, sys.executable, "-m", module, *flags]
        argv += [f"--logdir={logdir}"] if logdir else []
        # The programs set it themselves, but too late for one that is forked.
        env = {"TF_CPP_MIN_LOG_LEVEL": "3", **(env or {})}
        started.append(Training(argv, folder, logdir, env, start_program, **options))
        return started[-1]

    return begin


@pytest.fixture(scope="session")
def train(start: Train, empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Starts a training on digits, beside an empty MLflow store: making one takes seconds."""

    def begin(
        *flags: str, logdir: Path | None = None, files: Sequence[Path] = (), **options: Any
    ) -> Training:
        logdir = logdir or tmp_path_factory.mktemp("log")
        # The settings that the tests' numbers are of; only this program has presets.
        preset = [] if "module" in options else ["--preset=2016"]
        files = [empty_store, *files]
        return start("--dataset=digits", *preset, *flags, logdir=logdir, files=files, **options)

    return begin


@pytest.fixture(scope="session")
def tasks(train: Train) -> Callable[..., Tasks]:
    """Makes a cluster, whose tasks are started one by one."""
    return lambda **jobs: Tasks(train, **jobs)


@pytest.fixture(scope="session")
def record() -> Callable[[Path], Record]:
    """Reads back what lies in a log folder."""
    return Record


@pytest.fixture(scope="session")
def read_weights(
    tmp_path_factory: pytest.TempPathFactory, start_program: Callable[..., Any]
) -> Callable[..., list[Any]]:
    """Reads the checkpoints of (log folder, step) each, in a process that has TensorFlow."""

    def read(*checkpoints: tuple[Path, int]) -> list[Any]:
        folder: Path = tmp_path_factory.mktemp("weights")
        (folder / "read.py").write_text(
            "import sys, numpy; from compat.checkpoint import files\n"
            "for i, prefix in enumerate(sys.argv[1:]):\n"
            "    numpy.savez(str(i), **files.read(prefix))"
        )
        argv = [sys.executable, "read.py", *(f"{where}/model.ckpt-{n}" for where, n in checkpoints)]
        reading = Training(argv, folder, None, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program)
        assert reading.wait().code == 0, reading.err
        return [dict(np.load(str(folder / f"{i}.npz"))) for i in range(len(checkpoints))]

    return read


@pytest.fixture(scope="session")
def locals_by_runtime(train: Train, runtimes: list[str]) -> dict[str, Training]:
    """A training in one process on each runtime, at the same time: 4 epochs of 12 batches."""
    flags = ["--epochs=4", "--learning_rate=0.5", "--log_every=5", "--summary_every=4"]
    flags += ["--checkpoint_every=20", "--run_name=local"]
    running = {name: train(*flags, f"--runtime={name}") for name in runtimes}
    return {name: training.wait() for name, training in running.items()}


@pytest.fixture(scope="session")
def local(runtime: str, locals_by_runtime: dict[str, Training]) -> Training:
    """The training in one process, on each runtime, when it has ended."""
    return locals_by_runtime[runtime]
