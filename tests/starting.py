"""Starts the programs of the tests, forked from one process that has loaded TensorFlow and MLflow.

Loading them takes seconds of a core each, which hundreds of programs need otherwise."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest

import compat
from compat.processes.forked import Forked
from compat.processes.forking import ForkServer, read_early

PACKAGES = str(Path(compat.__file__).resolve().parents[1])  # The copy under test, not the folder.
FORK_SERVERS: dict[Any, ForkServer] = {}  # By what their programs have in common.
_MOST_SERVERS = 2  # Each has all of TensorFlow in memory.
# First: as MLflow configures its loggers, Python closes all handlers that exist. MLflow 1 loads
# IPython, which at exit closes a file that the server has closed.
_MLFLOW = ["compat.tracking.mlflow.delivery", "mlflow.store.tracking.sqlalchemy_store"]
_PRELOADED = [
    *(_MLFLOW if sys.version_info >= (3, 8) else []),
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "sklearn.datasets",
    "compat.tracking.tensorboard.writer",
    "experiments.training.main",
]


def environment() -> dict[str, str]:
    """Returns ours, without what would divert the traffic of a cluster."""
    proxies = {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy"}
    kept = {k: v for k, v in os.environ.items() if k.lower() not in proxies | {"tf_config"}}
    kept.update(PYTHONPATH=PACKAGES, PYTHONUNBUFFERED="1", TF_CPP_MIN_LOG_LEVEL="3")
    return {**kept, "MLFLOW_DISABLE_TELEMETRY": "true"}  # It would be a thread.


def start_program(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdout: Any,
    stderr: Any,
    pass_fds: tuple[int, ...] = (),
    alone: bool = False,
    **options: Any,
) -> subprocess.Popen[bytes] | Forked:
    """Starts a program in a session of its own, forked if it writes to files, unless `alone`."""
    env = environment() if env is None else env
    for descriptor in pass_fds:
        # Forked, a task may start its server before we have let go of its port.
        with socket.socket(fileno=os.dup(descriptor)) as reserved:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    key = tuple(sorted(read_early(env).items()))
    to_files = hasattr(stdout, "fileno") and not options and not alone
    if to_files and (key in FORK_SERVERS or len(FORK_SERVERS) < _MOST_SERVERS):
        server = FORK_SERVERS.setdefault(key, ForkServer(_PRELOADED))
        outputs = {"stdout": stdout.fileno(), "stderr": stderr.fileno()}
        forked = server.start(argv, cwd=str(cwd), env=env, pass_fds=pass_fds, **outputs)
        if forked is not None:
            return forked
    return subprocess.Popen(
        argv,
        cwd=str(cwd),
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        pass_fds=pass_fds,
        **options,
    )


def run_source(source: str, *argv: str, folder: Path) -> str:
    """Runs a piece of source in a folder to its end, and returns what it has printed."""
    (folder / "program.py").write_text(source, encoding="utf-8")
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        command = [sys.executable, "program.py", *argv]
        program = start_program(command, cwd=folder, env=environment(), stdout=out, stderr=err)
        code = program.wait(150)
    assert code == 0, (folder / "stderr").read_text(encoding="utf-8")
    return (folder / "stdout").read_text(encoding="utf-8")


def make_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an empty database of MLflow, which takes seconds to make; one for all of pytest."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    store, source = folder / "empty-store" / "mlflow.db", folder / "make_store.py"
    with open(folder / "make_store.log", "ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        if not store.exists():
            source.write_text(
                "import mlflow, os; os.mkdir('new')\n"
                "mlflow.tracking.MlflowClient('sqlite:///new/mlflow.db').search_runs(['0'])\n"
                "os.rename('new', 'empty-store')\n"
            )
            argv = [sys.executable, str(source)]
            made = start_program(argv, cwd=folder, env=environment(), stdout=log, stderr=log)
            assert made.wait(200) == 0, Path(log.name).read_text(encoding="utf-8")
    return store
