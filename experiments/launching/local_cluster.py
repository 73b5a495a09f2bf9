"""A whole cluster on this machine, of one command.

Example:
  >>> launch_local("experiments.mnist", ["--max_steps=200"], num_ps=1, num_workers=2)
  0
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from typing import Callable, Sequence, TextIO

from compat.cluster.ports import Reservation, reserve
from compat.errors import UserError
from compat.processes.group import MOST_TASKS, Command, ProcessGroup


def launch_local(
    module: str,
    argv: Sequence[str],
    num_ps: int,
    num_workers: int,
    *,
    strategy: str = "ps",
    chief: str = "worker 0",
    max_restarts: int = 0,
    evaluator: bool = False,
    say: Callable[[str], None] = print,
    out: TextIO | None = None,
) -> int:
    """Runs `python -m module` once per task of a cluster on loopback ports of its own.

    Args:
      module: the program, which understands --strategy, --job_name, --task_index, --ps_hosts,
        --worker_hosts and --run_token, and whose server sets SO_REUSEADDR, as TensorFlow's does.
      argv: its other arguments, the same for all tasks.
      num_ps: number of parameter servers.
      num_workers: number of workers.
      strategy: "ps", or "multi_worker", which has no parameter servers.
      chief: the task after whose end the others have to end, too, as "worker 0".
      max_restarts: how often each task is started again after a failure that may pass.
      evaluator: whether there is one beside the cluster; its failure stops nobody.
      say: told who failed, and who is stopped.
      out: takes the output of the tasks; None for standard output.

    Returns:
      The exit code of the whole, see `ProcessGroup.wait`.

    Raises:
      UserError: a number is below 1, there are too many, or `chief` is not a task.
      ValueError: this is not the main thread.
    """
    least_ps = 0 if strategy == "multi_worker" else 1
    for flag, number, least in (
        ("--num_ps", num_ps, least_ps),
        ("--num_workers", num_workers, 1),
        ("--max_restarts", max_restarts, 0),
    ):
        if number < least:
            raise UserError(f"{flag}={number} is too small; use {least} or more")
    if num_ps + num_workers + evaluator > MOST_TASKS:
        raise UserError(
            f"--num_ps={num_ps} and --num_workers={num_workers} are more than the {MOST_TASKS} "
            "tasks that one machine can have; use fewer"
        )
    with contextlib.ExitStack() as reserved:
        ps = [reserved.enter_context(reserve()) for _ in range(num_ps)]
        workers = [reserved.enter_context(reserve()) for _ in range(num_workers)]
        shared = all(port.share() for port in (*ps, *workers))
        commands = describe(module, argv, ps, workers, strategy, evaluator)
        beside = ["evaluator 0"] if evaluator else []
        servers = [f"ps {index}" for index in range(num_ps)]
        with ProcessGroup(
            commands,
            chief=chief,
            last=servers,
            beside=beside,
            say=say,
            out=out,
            max_restarts=max_restarts,
        ) as group:
            if not shared:
                reserved.close()  # From here on it is the tasks themselves that keep their ports.
            return group.wait()


def describe(
    module: str,
    argv: Sequence[str],
    ps: Sequence[Reservation],
    workers: Sequence[Reservation],
    strategy: str = "ps",
    evaluator: bool = False,
) -> list[Command]:
    """Returns the commands of a cluster, one per task; starts nothing.

    Args:
      module: as for `launch_local`.
      argv: as for `launch_local`.
      ps: a port per parameter server.
      workers: a port per worker.
      strategy: as for `launch_local`.
      evaluator: as for `launch_local`.
    """
    jobs = [(job, ports) for job, ports in (("ps", ps), ("worker", workers)) if ports]
    hosts = [f"--{job}_hosts=" + ",".join(port.address for port in ports) for job, ports in jobs]
    hosts.append(f"--run_token={uuid.uuid4().hex}")  # Ports may be another cluster's tomorrow.
    tasks: list[tuple[str, int, Reservation | None]] = [("evaluator", 0, None)] if evaluator else []
    tasks += [(job, index, port) for job, ports in jobs for index, port in enumerate(ports)]
    commands = []
    for job, index, reservation in tasks:
        # It would take the whole memory of each GPU that it can see.
        no_gpu = {} if job == "worker" else {"CUDA_VISIBLE_DEVICES": "-1"}
        task = [f"--strategy={strategy}", f"--job_name={job}", f"--task_index={index}"]
        port, pass_fds = ({}, ()) if reservation is None else reservation.pass_to_child()
        commands.append(
            Command(
                name=f"{job} {index}",
                argv=(sys.executable, "-m", module, *argv, *task, *hosts),
                env={"PYTHONUNBUFFERED": "1", **no_gpu, **port},
                pass_fds=pass_fds,
            )
        )
    return commands
