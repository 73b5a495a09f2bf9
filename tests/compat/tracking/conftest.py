"""Real servers and stores for the tests of the writers; every process has a deadline."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from typing import Callable, Iterator

import pytest
from mlflow.tracking import MlflowClient

import experiments
from compat.tracking import Tracker

ROOT = str(pathlib.Path(experiments.__file__).resolve().parents[1])
START_SECS = 120.0
# The Rust loader is a package of its own, which tensorboard 2.5 began to use.
LOADERS = ["slow", "fast"] if importlib.util.find_spec("tensorboard_data_server") else ["slow"]


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture
def logdir(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log folder that is not there yet, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "run")


@pytest.fixture
def stored(logdir: str, empty_store: pathlib.Path) -> str:
    """A log folder beside an empty database, as making one takes MLflow seconds."""
    os.makedirs(logdir)
    return shutil.copy(str(empty_store), store(logdir)) and logdir


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def python() -> Callable[..., subprocess.Popen]:
    """Starts Python on a piece of source, with the project on its path."""
    started: list[subprocess.Popen] = []

    def start(source: str, *argv: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", source, *argv],
            env=dict(os.environ, PYTHONPATH=ROOT),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=60)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine at which nobody listens until a test does, by `SO_REUSEADDR`."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture
def hanging_port() -> Iterator[int]:
    """A port at which connections are taken and never answered."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


def wait_for(condition: Callable[[], object], what: str, patience: float = 150.0) -> None:
    """Waits until `condition()` is true.

    Raises:
      AssertionError: If it is not within `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {patience} s"
        time.sleep(0.1)


@pytest.fixture(name="wait_for")
def wait_for_fixture() -> Callable[..., None]:
    return wait_for


@contextlib.contextmanager
def served_by_mlflow(folder: pathlib.Path, port: int) -> Iterator[str]:
    """The address of a real MLflow server on loopback, whose store is `folder`/mlflow.db."""
    env = dict(os.environ, MLFLOW_DISABLE_TELEMETRY="true")
    env["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # nine processes that only MLflow 3 has
    # MLflow 1 starts its workers by the name of a program beside Python.
    env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env["PATH"]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            # Ended by `timeout` if these tests are killed themselves.
            ["timeout", "--signal=KILL", "600",
             os.path.join(os.path.dirname(sys.executable), "mlflow"), "server",
             "--host", "127.0.0.1", "--port", str(port),
             "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--workers", "1",
             "--serve-artifacts", "--artifacts-destination", str(folder / "artifacts")],
            cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    address = f"http://127.0.0.1:{port}"

    def healthy() -> bool:
        assert server.poll() is None, (folder / "log").read_text()
        try:
            with urllib.request.urlopen(address + "/health", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    try:
        wait_for(healthy, "MLflow server", START_SECS)
        yield address
    finally:
        if server.poll() is None:
            # The server and its workers are a group of their own, which has the server's id.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(60)


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real MLflow server on loopback."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    with served_by_mlflow(tmp_path_factory.mktemp("mlflow_server"), port) as address:
        yield address


class Relay:
    """Makes a server reachable at a port at which nobody listened before.

    Args:
      port: that port.
      address: the server's, "http://host:port".
      delay: seconds for which each answer is held back.
    """

    def __init__(self, port: int, address: str, delay: float = 0.0) -> None:
        self._target = ("127.0.0.1", int(address.rsplit(":", 1)[1]))
        self._delay = delay
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target, timeout=30)
            for source, sink, delay in ((near, far, 0.0), (far, near, self._delay)):
                copy = threading.Thread(target=self._copy, args=(source, sink, delay), daemon=True)
                copy.start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket, delay: float) -> None:
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                time.sleep(delay)
                # For each request a connection: the server hangs up on those that wait for long.
                sink.sendall(data.replace(b"Connection: keep-alive", b"Connection: close     "))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@contextlib.contextmanager
def tensorboard(folder: pathlib.Path, loader: str) -> Iterator[str]:
    """The address of a real TensorBoard on loopback that shows a folder by one of `LOADERS`."""
    # Ended by `timeout` if these tests are killed themselves.
    command = ["timeout", "300", sys.executable, "-m", "tensorboard.main",
               "--logdir", str(folder), "--port", "0", "--host", "127.0.0.1"]  # fmt: skip
    if len(LOADERS) > 1:
        command.append("--load_fast=" + {"fast": "true", "slow": "false"}[loader])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=dict(os.environ, PYTHONUNBUFFERED="1"))  # fmt: skip
    deadline = threading.Timer(START_SECS, process.kill)
    deadline.start()
    printed: list[str] = []
    try:
        for line in process.stdout:
            printed.append(line.decode())
            found = re.search(r"http://(127\.0\.0\.1|localhost):(\d+)", printed[-1])
            if found:
                break
        else:
            raise AssertionError("TensorBoard did not start: " + "".join(printed))
        deadline.cancel()
        # So that the process never waits for somebody to read what it prints.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield f"http://127.0.0.1:{found.group(2)}"
    finally:
        deadline.cancel()
        process.terminate()
        process.wait(60)


def tracker(logdir, said, **options):
    settings = {
        "tracking_uri": None,
        "experiment_name": "mnist",
        "run_name": "first",
        "say": said.append,
    }
    return Tracker(logdir, **dict(settings, **options))


def run_id(logdir):
    return pathlib.Path(logdir, "mlflow_run_id").read_text().split()[0]


def store(logdir):
    return os.path.join(os.path.dirname(logdir), "mlflow.db")


def client(logdir):
    return MlflowClient(tracking_uri=f"sqlite:///{store(logdir)}")


def run(logdir):
    return client(logdir).get_run(run_id(logdir))


def history(logdir, name):
    found = client(logdir).get_metric_history(run_id(logdir), name)
    return sorted((m.step, m.value) for m in found)
