"""Launches a whole cluster on this machine.

Example:
  >>> launch_local("experiments.mnist", ["--max_steps=200"], num_ps=1, num_workers=2)
  0
  >>> launch_local(Path("cancer.py"), ["--hidden=32"], num_ps=1, num_workers=2)
  0
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Mapping, Sequence, TextIO, Union

from compat.cluster.ports import Reservation, reserve
from compat.errors import UserError
from compat.processes.forking import ForkServer
from compat.processes.group import MOST_TASKS, Command, ProcessGroup
from experiments.settings.place import LAUNCHED

Program = Union[str, Path]  # The name of a module, or the path of a script.
_GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
_GPU_FOLDER = Path("/proc/driver/nvidia/gpus")
_GPU_TIMEOUT_SECS = 20.0  # The driver may have to be loaded first.


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
) -> int:
    """Runs a program once per task of a cluster, on reserved ports; returns the exit code.

    Workers are given the visible GPUs in turn, one each; the other tasks are given none.

    The program takes the flags of a task, and its server sets SO_REUSEADDR, as TensorFlow's does.
    The exit of worker 0 ends the others, the failure of an evaluator does not.
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
    if isinstance(program, Path) and not program.is_file():
        raise UserError(f"program {str(program)!r} is not a file; name a Python script")
    with contextlib.ExitStack() as reserved:
        ps = [reserved.enter_context(reserve()) for _ in range(num_ps)]
        workers = [reserved.enter_context(reserve()) for _ in range(num_workers)]
        shared = all(port.share() for port in (*ps, *workers))
        gpus = visible_gpus(os.environ)
        fork_server = reserved.enter_context(ForkServer(["experiments.main"]))
        with ProcessGroup(
            describe(program, argv, ps, workers, strategy, evaluator, gpus),
            chief="worker 0",
            last=[f"ps {index}" for index in range(num_ps)],
            beside=["evaluator 0"] if evaluator else [],
            out=out,
            max_restarts=max_restarts,
            fork_server=fork_server,
        ) as group:
            if not shared:  # From here on the tasks themselves keep their ports.
                for port in (*ps, *workers):
                    port.release()
            return group.wait()


def describe(
    program: Program,
    argv: Sequence[str],
    ps: Sequence[Reservation],
    workers: Sequence[Reservation],
    strategy: str = "ps",
    evaluator: bool = False,
    gpus: Sequence[str] = (),
) -> list[Command]:
    """Returns the commands of a cluster as `launch_local` runs them, one per task."""
    python = [sys.executable, *([str(program)] if isinstance(program, Path) else ["-m", program])]
    jobs = [(job, ports) for job, ports in (("ps", ps), ("worker", workers)) if ports]
    hosts = [f"--{job}_hosts=" + ",".join(port.address for port in ports) for job, ports in jobs]
    hosts.append(f"--run_token={uuid.uuid4().hex}")  # Another cluster may get these ports later.
    tasks: list[tuple[str, int, Reservation | None]] = [("evaluator", 0, None)] if evaluator else []
    tasks += [(job, index, port) for job, ports in jobs for index, port in enumerate(ports)]
    commands = []
    for job, index, reservation in tasks:
        port, pass_fds = ({}, ()) if reservation is None else reservation.pass_to_child()
        env = {"PYTHONUNBUFFERED": "1", LAUNCHED: "1", **port}
        # Read as TensorFlow is loaded, which may be before the task begins.
        env["TF_CPP_MIN_LOG_LEVEL"] = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3")
        # A task allocates the memory of each GPU that it sees.
        if job != "worker":
            env[_GPU_VARIABLE] = "-1"
        elif gpus:
            env[_GPU_VARIABLE] = gpus[index % len(gpus)]
        task = [f"--strategy={strategy}", f"--job_name={job}", f"--task_index={index}"]
        commands.append(Command(f"{job} {index}", (*python, *argv, *task, *hosts), env, pass_fds))
    return commands


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """Returns the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` names them.

    Asks neither CUDA nor TensorFlow, which would allocate memory on each of them.
    """
    limit = environment.get(_GPU_VARIABLE)
    if limit is not None:
        # As CUDA does: the first entry that names no device ends the list.
        names = (name.strip() for name in limit.split(","))
        return list(itertools.takewhile(lambda name: name not in ("", "-1"), names))
    return [str(index) for index in range(_count_gpus(environment))]


def _count_gpus(environment: Mapping[str, str]) -> int:
    nvidia_smi = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if nvidia_smi is not None:
        try:
            listed = subprocess.run(
                [nvidia_smi, "-L"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_GPU_TIMEOUT_SECS,
                check=True,
            ).stdout
            return sum(line.startswith(b"GPU ") for line in listed.splitlines())
        except (OSError, subprocess.SubprocessError):
            pass  # Installed without a driver, or a driver that does not answer.
    return len(list(_GPU_FOLDER.iterdir())) if _GPU_FOLDER.is_dir() else 0
