"""Runs a program as each task of a cluster on this machine, on reserved ports."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, ContextManager, Mapping, Sequence

from compat.cluster.ports import Reservation, reserve
from compat.cluster.spec import Task
from compat.errors import UserError
from compat.processes.forking import ForkServer
from compat.processes.group import MOST_TASKS, Command, ProcessGroup

_GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
_GPU_FOLDER = Path("/proc/driver/nvidia/gpus")
_GPU_TIMEOUT_SECS = 20.0  # The driver may have to be loaded first.
_WITHOUT_GPU = ("ps", "evaluator")
Hosts = Mapping[str, Sequence[str]]  # The addresses of each job.


class LocalCluster(ContextManager["LocalCluster"]):
    """The tasks of a cluster; a context manager that reserves their ports.

    `hosts` has the addresses of each job, on loopback. With `inherit`, each task inherits its
    reserved port, which its server has to release before use, as `compat.Server` does. Otherwise, a
    port that cannot be shared (on macOS) is released before the tasks start, and another program
    might take it. Raises `UserError` if there are more tasks than one machine can run.
    """

    def __init__(self, counts: Mapping[str, int], inherit: bool = False) -> None:
        if sum(counts.values()) > MOST_TASKS:
            shown = ",".join(f"{job}={count}" for job, count in counts.items())
            raise UserError(
                f"{shown} are {sum(counts.values())} tasks, expected at most {MOST_TASKS} on one "
                "machine; start fewer"
            )
        self._inherit = inherit
        with contextlib.ExitStack() as stack:
            self._ports = {
                Task(job, index): stack.enter_context(reserve())
                for job, count in counts.items()
                for index in range(count)
            }
            self._reserved = stack.pop_all()
        self.hosts: dict[str, list[str]] = {}
        for task, port in self._ports.items():
            self.hosts.setdefault(task.job, []).append(port.address)

    def commands(
        self,
        words: Callable[[Task], Sequence[str]],
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> list[Command]:
        """Returns the command of each task; `options` are those of this module's `commands`."""
        all_commands = commands(self.hosts, words, env, gpus=visible_gpus(os.environ), **options)
        ports = {f"{task.job} {task.index}": port for task, port in self._ports.items()}
        return [self._with_port(command, ports.get(command.name)) for command in all_commands]

    def _with_port(self, command: Command, port: Reservation | None) -> Command:
        if port is None or not self._inherit:
            return command
        env, pass_fds = port.pass_to_child()
        return replace(command, env={**command.env, **env}, pass_fds=pass_fds)

    def run(
        self, commands: Sequence[Command], fork_server: ForkServer | None = None, **options: Any
    ) -> int:
        """Runs commands in a `ProcessGroup` with these options; returns the exit code.

        The `fork_server` loads TensorFlow once for all commands that it can start, and is closed at
        the end.
        """
        # The port of a restarted task is still reserved, if ports can be shared.
        shared = all(port.share() for port in self._ports.values())
        if not shared and not self._inherit:
            self.release()
        with contextlib.ExitStack() as stack:
            if fork_server is not None:
                stack.enter_context(fork_server)
            group = ProcessGroup(commands, fork_server=fork_server, **options)
            stack.enter_context(group)
            if not shared:
                self.release()
            return group.wait()

    def release(self) -> None:
        """Releases the ports; further calls do nothing."""
        self._reserved.close()

    def __exit__(self, *exception: Any) -> None:
        self.release()


def commands(
    hosts: Hosts,
    words: Callable[[Task], Sequence[str]],
    env: Mapping[str, str] | None = None,
    *,
    evaluator: bool = False,
    variables: Callable[[Task], Mapping[str, str]] | None = None,
    gpus: Sequence[str] = (),
) -> list[Command]:
    """Returns the command of each task: an evaluator first, then the jobs in order.

    `words` returns the command line of a task; `env` and `variables` are added to its environment.
    The tasks that compute get one of the `gpus`, as `CUDA_VISIBLE_DEVICES` names them, in turn.
    """
    tasks = [Task("evaluator", 0)] if evaluator else []
    tasks += [Task(job, index) for job in hosts for index in range(len(hosts[job]))]
    turn = itertools.cycle(gpus)
    task_commands = []
    for task in tasks:
        task_env = {
            "PYTHONUNBUFFERED": "1",
            **(env or {}),
            **(variables(task) if variables else {}),
        }
        # A task allocates the memory of each GPU that it sees.
        if task.job in _WITHOUT_GPU:
            task_env[_GPU_VARIABLE] = "-1"
        elif gpus:
            task_env[_GPU_VARIABLE] = next(turn)
        task_commands.append(Command(f"{task.job} {task.index}", tuple(words(task)), task_env))
    return task_commands


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """Returns the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` names them.

    Asks neither CUDA nor TensorFlow, which would allocate memory on each of them.
    """
    limit = environment.get(_GPU_VARIABLE)
    if limit is not None:
        # As in CUDA, the first entry that does not name a device ends the list.
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
            pass  # There is no driver, or it does not answer.
    return len(list(_GPU_FOLDER.iterdir())) if _GPU_FOLDER.is_dir() else 0
