"""Programs that use TensorFlow, each in a process of its own, alone or as the tasks of a cluster.

A process can hold one runtime only, and loading TensorFlow takes seconds. So a program does many
things and prints what it saw as one line of JSON, and many small tests look at that.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import runpy
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

# Before anything that loads absl: as MLflow configures its loggers, Python closes all handlers that
# exist, and absl's closes the stream that pytest captures.
import mlflow  # noqa: F401
import pytest

from compat.cluster import ports

DEADLINE_SECS = 150.0


def has_modern_runtime() -> bool:
    """Asks TensorFlow by feature, as `compat._tensorflow` does, but without loading it."""
    origin = getattr(importlib.util.find_spec("tensorflow"), "origin", None)
    assert origin is not None
    coordinator = "python/distribute/coordinator/cluster_coordinator.py"
    return (Path(origin).parent / coordinator).exists()


RUNTIMES = ["legacy", "modern"] if has_modern_runtime() else ["legacy"]


# Begun first, so that none of several processes of pytest is still at one when the others are done.
LONGEST = "experiment cluster_training clusters recording resume tracking failures shared_queue "
LONGEST += "tracking_server command_line export api contrib sweep local_training ledger readme "
LONGEST += "losses estimators peers prove launch doctor seeds any_program matpow "
LONGEST += "monitored notebooks architecture"


@pytest.hookimpl(tryfirst=True)  # Before slow tests are left out.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow, where there are both runtimes, the legacy one's endings and failures.

    They are the same code and the same tests as on TensorFlow 1.15, which runs them always.
    """
    order = {f"test_{name}.py": place for place, name in enumerate(LONGEST.split())}
    items.sort(key=lambda item: order.get(Path(item.fspath).name, len(order)))
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if "endings" in item.keywords and len(RUNTIMES) > 1 and params.get("runtime") == "legacy":
            item.add_marker(pytest.mark.slow)
        for marker in item.iter_markers("feature"):
            names = marker.args or ([params["runtime"]] if "runtime" in params else [])
            for name in names:
                item.user_properties.append(("feature", name))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds what tox asks for where all tests run."""
    told = "leave what the tests of each feature have shown in FILE; see matrix_results.py"
    parser.addoption("--matrix-results", type=Path, metavar="FILE", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Keeps what the tests have shown, if that is asked for; hears what `nohup` and `&` ignore."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.loadscopereorder = False  # pytest-xdist puts the files with most tests first.
    file = config.getoption("--matrix-results", None)  # No option where found late.
    # Of several processes of pytest, one hears from all.
    if file is not None and not hasattr(config, "workerinput"):
        results = runpy.run_path(str(Path(__file__).with_name("matrix_results.py")))
        config.pluginmanager.register(results["MatrixResults"](file, RUNTIMES))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints how many inputs `tests/fuzz` has tried, in whichever process of pytest."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    calls = [report for report in reports if getattr(report, "when", "") == "call"]
    tried = {r.nodeid: n for r in calls for key, n in r.user_properties if key == "tried"}
    if tried:
        for test, count in [*tried.items(), ("inputs tried", sum(tried.values()))]:
            terminalreporter.write_line(f"fuzz: {count} {test.rpartition('/')[2]}")


@pytest.fixture(scope="session")
def runtimes() -> list[str]:
    """The runtimes that this TensorFlow has."""
    return RUNTIMES


@pytest.fixture(scope="session", params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    """Each runtime that this TensorFlow has."""
    return str(request.param)


# By path: where tox runs, the folder of the tests is not on Python's.
STARTING = runpy.run_path(str(Path(__file__).with_name("starting.py")))
PACKAGES: str = STARTING["PACKAGES"]  # The folder of the copy under test.
start_program, environment = STARTING["start_program"], STARTING["environment"]


def pytest_unconfigure() -> None:
    """Ends the processes that have loaded TensorFlow for the tests' programs."""
    for server in STARTING["FORK_SERVERS"].values():
        server.close()


@pytest.fixture(scope="session", name="start_program")
def _start_program() -> Callable[..., Any]:
    """Starts a program; see `starting.py`."""
    return start_program


empty_store = pytest.fixture(scope="session")(STARTING["make_store"])
run_source = pytest.fixture(scope="session", name="run_source")(lambda: STARTING["run_source"])


class Process:
    """A program that was started, in a process group of its own.

    Attributes:
      pid: its id.
      code: how it ended; negative for a signal.
      ended: when it ended, by `time.monotonic`, which all processes of a machine share.
    """

    def __init__(
        self,
        program: Path,
        settings: Mapping[str, Any],
        folder: Path,
        env: Mapping[str, str],
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        folder.mkdir(parents=True)
        self._name = f"{program.stem} {json.dumps(settings)}"
        self._stdout, self._stderr = folder / "stdout", folder / "stderr"
        argv = [sys.executable, str(program), json.dumps(settings)]
        with open(self._stdout, "wb") as out, open(self._stderr, "wb") as err:
            options = {"stdout": out, "stderr": err, "pass_fds": pass_fds, "cwd": folder}
            self._process = start_program(argv, env={**environment(), **env}, **options)
        self.pid = self._process.pid
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        self.code = self._process.wait()
        self.ended = time.monotonic()
        self._over.set()

    def wait(self, seconds: float = DEADLINE_SECS) -> Process:
        """Waits for the end."""
        assert self._over.wait(seconds), f"{self._name} runs after {seconds} s: {self.complaints}"
        return self

    def wait_until_it_says(self, text: str, seconds: float = DEADLINE_SECS) -> None:
        """Waits for a text on its standard output."""
        deadline = time.monotonic() + seconds
        while text not in self.said:
            assert not self._over.is_set(), f"{self._name} ended: {self.said} {self.complaints}"
            assert time.monotonic() < deadline, f"{self._name} never said {text!r}: {self.said}"
            time.sleep(0.05)

    def send(self, signum: int) -> None:
        """Sends its process group a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            if not self._over.is_set():
                os.killpg(self._process.pid, signum)

    @property
    def said(self) -> str:
        """Its standard output so far."""
        return self._stdout.read_text(encoding="utf-8")

    @property
    def complaints(self) -> str:
        """Its standard error so far."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    @property
    def report(self) -> Any:
        """The JSON value that it printed last; it must have exited with 0."""
        self.wait()
        assert self.code == 0, f"{self._name} ended with {self.code}: {self.complaints}"
        return json.loads(self.said.splitlines()[-1])


class Cluster:
    """The tasks of one cluster, on ports that are reserved until each one starts."""

    def __init__(self, program: Path, runtime: str, folder: Path, jobs: Mapping[str, int]) -> None:
        self._program, self._runtime, self._folder = program, runtime, folder
        self._ports = {(job, i): ports.reserve() for job in jobs for i in range(jobs[job])}
        self.addresses: dict[str, list[str]] = {}
        for (job, _), port in self._ports.items():
            self.addresses.setdefault(job, []).append(port.address)
        self.started: list[Process] = []

    def start(self, job: str, index: int = 0, **settings: Any) -> Process:
        """Starts one task; `settings` are for the program."""
        reservation = self._ports[job, index]
        kept = reservation.share()  # Else another process may take the port before a restart.
        env, pass_fds = reservation.pass_to_child()
        process = self._start(job, index, settings, f"{job}{index}", env, pass_fds)
        if not kept:
            reservation.release()
        return process

    def restart(self, job: str, index: int = 0, **settings: Any) -> Process:
        """Starts a task once more that has ended."""
        return self._start(job, index, settings, f"{job}{index}-{len(self.started)}", {})

    def _start(self, job: str, index: int, settings: Any, name: str, *inherited: Any) -> Process:
        task = {"runtime": self._runtime, "cluster": self.addresses, "job": job, "index": index}
        given = {**task, **settings}
        self.started.append(Process(self._program, given, self._folder / name, *inherited))
        return self.started[-1]

    def end(self) -> None:
        """Ends what still runs, by its id."""
        for process in self.started:
            process.send(signal.SIGKILL)
        for reservation in self._ports.values():
            reservation.release()


StartCluster = Callable[..., "contextlib.AbstractContextManager[Cluster]"]
RunProgram = Callable[..., Any]


@pytest.fixture(scope="session")
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> StartCluster:
    """A context manager that makes a `Cluster` and ends it."""

    @contextlib.contextmanager
    def start(program: Path, runtime: str, **jobs: int) -> Iterator[Cluster]:
        cluster = Cluster(program, runtime, tmp_path_factory.mktemp(program.stem), jobs)
        try:
            yield cluster
        finally:
            cluster.end()

    return start


@pytest.fixture(scope="session")
def run_program(tmp_path_factory: pytest.TempPathFactory) -> RunProgram:
    """Runs a program to its end and returns its report."""

    def run(program: Path, **settings: Any) -> Any:
        folder = tmp_path_factory.mktemp(program.stem) / "run"
        process = Process(program, settings, folder, env={})
        try:
            return process.report
        finally:
            process.send(signal.SIGKILL)

    return run


class Page:
    """The first command of a page of docs and the output below it.

    Attributes:
      flags: of the command, a `python -m` of ours.
    """

    def __init__(self, name: str) -> None:
        text = (Path(__file__).parents[1] / "docs" / name).read_text(encoding="utf-8")
        command, self._output = re.findall(r"```(?:sh|text)\n(.*?)```", text, re.DOTALL)[:2]
        self.flags = shlex.split(command)[3:]

    def assert_shows(self, output: str) -> None:
        """Checks all but numbers, the order of the lines, and words about waiting."""
        assert self._lines(output) == self._lines(self._output)

    @staticmethod
    def _lines(text: str) -> list[str]:
        # How TensorFlow 1.15 names a server of this machine.
        text = text.replace("localhost", "127.0.0.1")
        lines = [re.sub(r"\d[\d.e-]*( \d+)*", "#", line) for line in text.splitlines()]
        return sorted(
            line
            for line in lines
            if not re.search("waiting for|there after|MLflow: the rest", line)
        )


@pytest.fixture(scope="session")
def page() -> Callable[[str], Page]:
    """Reads a page of docs whose first command a test runs."""
    return Page
