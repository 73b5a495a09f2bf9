"""Launches a whole cluster on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Sequence, TextIO, Union

from compat.checkpoint.folder_lock import FolderLock
from compat.cluster.spec import Task
from compat.errors import UserError
from compat.processes.forking import ForkServer
from compat.processes.group import Command
from compat.processes.local_cluster import LocalCluster
from experiments.launching.command_line import log_level
from experiments.launching.task_record import TaskRecord
from experiments.settings.place import LAUNCHED

Program = Union[str, Path]  # The name of a module, or the path of a script.
_CHIEF = "worker 0"


def loading() -> ForkServer:
    """Returns a process that begins to load what the tasks of experiments do, to fork them."""
    server = ForkServer(["experiments.training.task"])
    server.load({**os.environ, **log_level()})
    return server


def this_program() -> Program:
    """Returns the program of this process, for launching it again as the tasks of a cluster."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # `python -m`, which gives a package its `__main__` module.
        name: str = spec.name
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    path = getattr(main, "__file__", None)
    if path is None:
        raise UserError(
            "a local cluster runs a program once per task, and this Python runs none; save the "
            "experiment as a file and run that, or train in one process with strategy='local'"
        )
    return Path(path).absolute()


def launch_local(
    program: Program,
    argv: Sequence[str],
    num_ps: int,
    num_workers: int,
    *,
    strategy: str = "ps",
    max_restarts: int = 0,
    evaluator: bool = False,
    out: TextIO | None = None,
    logdir: str | None = None,
    fork_server: ForkServer | None = None,
) -> int:
    """Runs a program once per task of a cluster, on reserved ports; returns the exit code.

    Workers are given the visible GPUs in turn, one each. The program takes the flags of a task, and
    its server sets SO_REUSEADDR. The exit of worker 0 ends the others, an evaluator's does not.
    When each task started and ended is recorded in `logdir`, if it is given; no other run gets that
    folder before all have ended. A `fork_server` may have begun to load TensorFlow.

    Raises:
      UserError: a number is too small, the program is no file, or another run is in `logdir`.
    """
    least_ps = 0 if strategy == "multi_worker" else 1
    for flag, number, least in (
        ("--num_ps", num_ps, least_ps),
        ("--num_workers", num_workers, 1),
        ("--max_restarts", max_restarts, 0),
    ):
        if number < least:
            raise UserError(f"{flag}={number} is too small; use {least} or more")
    if isinstance(program, Path) and not program.is_file():
        raise UserError(f"program {str(program)!r} is not a file; name a Python script")
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(contextlib.closing(FolderLock(logdir))) if logdir else None
        counts = {"ps": num_ps, "worker": num_workers}
        cluster = stack.enter_context(LocalCluster(counts, inherit=True))
        commands = describe(program, argv, cluster, strategy, evaluator)
        return cluster.run(
            [_with_lock(c, lock) if c.name == _CHIEF else c for c in commands],
            chief=_CHIEF,
            last=[f"ps {index}" for index in range(num_ps)],
            beside=["evaluator 0"] if evaluator else [],
            out=out,
            max_restarts=max_restarts,
            fork_server=fork_server or loading(),
            **({} if logdir is None else {"watch": TaskRecord(logdir)}),
        )


def _with_lock(command: Command, lock: FolderLock | None) -> Command:
    env, descriptors = lock.pass_to_child() if lock else ({}, ())
    return replace(command, env={**command.env, **env}, kept_fds=descriptors)


def describe(
    program: Program,
    argv: Sequence[str],
    cluster: LocalCluster,
    strategy: str = "ps",
    evaluator: bool = False,
) -> list[Command]:
    """Returns the commands of a cluster as `launch_local` runs them, one per task."""
    python = [sys.executable, *([str(program)] if isinstance(program, Path) else ["-m", program])]
    hosts = [f"--{job}_hosts=" + ",".join(addresses) for job, addresses in cluster.hosts.items()]
    hosts.append(f"--run_token={uuid.uuid4().hex}")  # Another cluster may get these ports later.

    def words(task: Task) -> list[str]:
        place = [f"--strategy={strategy}", f"--job_name={task.job}", f"--task_index={task.index}"]
        return [*python, *argv, *place, *hosts]

    return cluster.commands(words, {LAUNCHED: "1", **log_level()}, evaluator=evaluator)
