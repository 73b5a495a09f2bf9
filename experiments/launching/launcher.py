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
    """Returns a process that loads TensorFlow and this package once, and forks tasks."""
    server = ForkServer(["experiments.training.task"])
    server.load({**os.environ, **log_level()})
    return server


def this_program() -> Program:
    """Returns the program that this process runs, in order to start it as the tasks of a cluster.

    Raises a `UserError` in a notebook, which has no program.
    """
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

    Each worker gets one of the visible GPUs, in turn. The exit of worker 0 ends all other tasks;
    the exit of an evaluator ends none.

    Args:
      program: a program that accepts the flags of a task, and whose server sets SO_REUSEADDR.
      argv: the arguments that all tasks get.
      num_ps: the number of parameter servers.
      num_workers: the number of workers.
      strategy: "ps", or "multi_worker", which needs no parameter server.
      max_restarts: how often each task that fails is started again.
      evaluator: whether to start an evaluator as well.
      out: where the tasks' output is written; None for standard output.
      logdir: where the start and end of each task are recorded. The folder is locked until all
        tasks have ended, so that no other run writes to it.
      fork_server: a process to fork the tasks from; None to start one.

    Raises:
      UserError: a number is too small, the program is not a file, or another run is in `logdir`.
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
    """Returns the commands that `launch_local` runs, one for each task of the cluster."""
    python = [sys.executable, *([str(program)] if isinstance(program, Path) else ["-m", program])]
    hosts = [f"--{job}_hosts=" + ",".join(addresses) for job, addresses in cluster.hosts.items()]
    hosts.append(f"--run_token={uuid.uuid4().hex}")  # Another cluster may get these ports later.

    def words(task: Task) -> list[str]:
        place = [f"--strategy={strategy}", f"--job_name={task.job}", f"--task_index={task.index}"]
        return [*python, *argv, *place, *hosts]

    return cluster.commands(words, {LAUNCHED: "1", **log_level()}, evaluator=evaluator)
