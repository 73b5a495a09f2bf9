"""Starts the programs of the tests, forked from one process that has loaded TensorFlow.

Loading it takes seconds of a core, which hundreds of programs need otherwise."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any, Mapping, Sequence

from compat.processes.forking import Forked, ForkServer

FORK_SERVER = ForkServer(["experiments.main"])


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
    """Starts a program in a session of its own; with `options` of `Popen` it is not forked."""
    for descriptor in pass_fds:
        # Forked, a task may start its server before we have let go of its port.
        with socket.socket(fileno=os.dup(descriptor)) as reserved:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not options:
        outputs = {"stdout": stdout.fileno(), "stderr": stderr.fileno()}
        forked = FORK_SERVER.start(argv, cwd=str(cwd), env=env, pass_fds=pass_fds, **outputs)
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
