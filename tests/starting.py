"""Starts the programs of the tests, forked from one process that has loaded TensorFlow and MLflow.

Loading them takes seconds of a core each, which hundreds of programs need otherwise."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

from compat.processes.forking import Forked, ForkServer, read_early

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


def start_program(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Any,
    stderr: Any,
    pass_fds: tuple[int, ...] = (),
    **options: Any,
) -> subprocess.Popen[bytes] | Forked:
    """Starts a program in a session of its own, forked if it writes to files."""
    for descriptor in pass_fds:
        # Forked, a task may start its server before we have let go of its port.
        with socket.socket(fileno=os.dup(descriptor)) as reserved:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    key = tuple(sorted(read_early(env).items()))
    to_files = hasattr(stdout, "fileno") and not options
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
