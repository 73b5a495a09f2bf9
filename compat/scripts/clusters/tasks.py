"""Runs any program as the tasks of a cluster on this machine."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from typing import Any, Mapping, Sequence

from compat.errors import UserError
from compat.processes.forking import ForkServer
from compat.processes.local_cluster import LocalCluster
from compat.scripts.clusters import forkable, inherited
from compat.scripts.clusters.task_arguments import Spelling, spelling
from compat.scripts.reading import conversion

_OWN_NAMES = ("localhost", "0.0.0.0")  # noqa: S104 - read in scripts, never bound.


def parse(option: str) -> dict[str, int]:
    """Parses the number of tasks per job, such as "ps=1,worker=3"."""
    counts: dict[str, int] = {}
    for part in option.split(","):
        job, _, number = part.strip().partition("=")
        if not re.fullmatch(r"\w+=[0-9]{1,9}", part.strip()) or int(number) < 1 or job in counts:
            raise UserError(
                f"--cluster has {part!r}, expected JOB=NUMBER, each job once; "
                "write it as in --cluster ps=1,worker=3"
            )
        counts[job] = int(number)
    if set(counts) == {"ps"}:
        raise UserError(f"--cluster={option} has parameter servers only; add worker=1")
    return counts


def run(
    counts: dict[str, int],
    program: Sequence[str],
    options: Sequence[str],
    arguments: Sequence[str],
    task_args: str | None,
) -> int:
    """Runs `compat run --cluster` until the training tasks have finished; returns the exit code.

    The program is a script, or "-m" and a module in the current folder.
    """
    is_script = len(program) == 1
    script = program[0] if is_script else _file(program[1])
    parts = conversion.read(script)
    how = spelling(parts, arguments, script) if task_args is None else Spelling(task_args.split())
    words = " ".join([*how.arguments, *how.variables]) or "TF_CONFIG"
    print(f"compat: arguments of each task: {words}", flush=True)
    command = (sys.executable, "-m", "compat", "run", *options, *program, *arguments)
    survey = forkable.survey(script) if is_script else None
    env = {} if survey is None else {**log_level(), **survey.env}
    return launch(command, counts, how, env, fork_server=survey and ForkServer())


def _file(module: str) -> str:
    """Returns the file of a module, without importing it."""
    path = os.path.join(*module.split("."))
    for file in (f"{path}.py", os.path.join(path, "__main__.py")):
        if os.path.isfile(file):
            return file
    raise UserError(f"--cluster found no module {module} here, expected {path}.py; start it there")


def log_level() -> dict[str, str]:
    """Returns the variable that limits TensorFlow's log to errors, unless the user has set it."""
    return {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}


def launch(
    command: Sequence[str],
    counts: Mapping[str, int],
    how: Spelling,
    env: Mapping[str, str],
    *,
    evaluator: bool = False,
    **options: Any,
) -> int:
    """Runs a command once per task, with the arguments of `how`; returns the exit code.

    Each task also has the variables `env`. The options are those of `LocalCluster.run`.

    Parameter servers may never exit by themselves, so they are stopped when all other tasks have
    exited. Tasks under `compat run` also map the hosts in their script to this machine.
    """
    with LocalCluster(counts) as cluster, tempfile.TemporaryDirectory(prefix="compat-") as folder:
        ports = os.path.join(folder, "ports.json")
        # The addresses of the tasks are mapped to themselves.
        known = {a: a for addresses in cluster.hosts.values() for a in addresses}
        # A task may use another name of this machine for its own server.
        for address in list(known):
            port = address.rpartition(":")[2]
            known.update((f"{name}:{port}", address) for name in _OWN_NAMES)
        # The script may connect to its default addresses.
        for job, defaults in how.defaults.items():
            for address, new in zip(defaults, cluster.hosts.get(job, ())):
                known.setdefault(address, new)
        with open(ports, "w", encoding="utf-8") as file:
            json.dump({old: new for old, new in known.items() if old}, file)
        commands = cluster.commands(
            lambda task: (*command, *how.words(task.job, task.index, cluster.hosts)),
            {
                **env,
                inherited.PORTS: ports,
                inherited.COUNTS: json.dumps(counts),
                inherited.RECORD: os.path.join(folder, "record"),
            },
            evaluator=evaluator,
            variables=lambda task: how.environment(task, cluster.hosts),
        )
        names = [command.name for command in commands]
        servers = [name for name in names if name.startswith("ps ")]
        beside = [name for name in names if evaluator and name == "evaluator 0"]
        return cluster.run(commands, servers=servers, beside=beside, **options)
