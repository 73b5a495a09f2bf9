"""The command lines of a cluster's tasks, to be started by hand, each on its own host."""

from __future__ import annotations

import shlex
from typing import Mapping, Sequence

from compat.processes.group import Command


def shell(commands: Sequence[Command], hosts: Mapping[str, Sequence[str]]) -> str:
    """Returns a line per task for a shell: environment, program and arguments.

    A command has the name "JOB INDEX"; an evaluator is not among the `hosts`.
    """
    lines = []
    for command in commands:
        job, _, index = command.name.partition(" ")
        at = f" at {hosts[job][int(index)]}" if job in hosts else ""
        env = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
        lines += [f"# {command.name}{at}", " ".join([*env, *map(shlex.quote, command.argv)])]
    return "".join(f"{line}\n" for line in lines)
