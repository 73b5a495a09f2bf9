"""`--cluster ps=1,worker=3`: starts all tasks of a script on this machine, one process each."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from typing import Iterable, Mapping, Sequence

from compat.errors import UserError
from compat.processes.group import MOST_TASKS, Command, ProcessGroup
from compat.scripts.cluster import environment
from compat.scripts.source import conversion, literals

_JOB = ("job_name", "job-name", "jobname", "job", "job_type", "task_type", "role")
_INDEX = ("task_index", "task-index", "task_id", "task-id", "taskid", "task", "index", "task_num")
_HOSTS = {
    "ps": ("ps_hosts", "ps-hosts", "parameter_servers", "ps", "ps_host", "pss"),
    "worker": ("worker_hosts", "worker-hosts", "workers", "worker", "worker_host"),
    "chief": ("chief_hosts", "chief-hosts", "chief", "master_hosts"),
}


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
    if sum(counts.values()) > MOST_TASKS:
        raise UserError(
            f"--cluster={option} has {sum(counts.values())} tasks, expected at most {MOST_TASKS} "
            "on one machine; start fewer"
        )
    if set(counts) == {"ps"}:
        raise UserError(f"--cluster={option} has parameter servers only; add worker=1")
    return counts


@dataclass(frozen=True)
class Spelling:
    """How a script receives its task: templates with {job}, {index} and hosts, or TF_CONFIG."""

    arguments: Sequence[str]
    tf_config: bool = False

    def words(self, job: str, index: int, hosts: Mapping[str, Sequence[str]]) -> list[str]:
        """Returns the arguments of one task; `hosts` has the addresses of each job."""
        known = {"ps": "", "worker": "", "chief": ""}
        known.update({name: ",".join(addresses) for name, addresses in hosts.items()})
        known.update(job=job, index=str(index))
        for name in re.findall(r"\{(\w*)\}", " ".join(self.arguments)):
            if name not in known:
                raise UserError(
                    f"--task_args has {{{name}}}, expected one of {', '.join(known)} in braces; "
                    "write it as in --task_args='--job={job} --id={index}'"
                )
        return [re.sub(r"\{(\w+)\}", lambda m: known[m[1]], word) for word in self.arguments]


def spelling(parts: Iterable[conversion.Source], given: Sequence[str], script: str) -> Spelling:
    """Infers how a script receives its task; leaves out flags that are already `given`."""
    flags: list[str] = []
    text = ""
    positions: set[int] = set()
    for part in parts:
        try:
            tree = part.tree()
        except SyntaxError as error:
            place = f"{part.filename}:{error.lineno or 1}"
            raise UserError(f"{place}: {error.msg}; correct the script") from None
        text += part.text
        flags += _flags(tree)
        positions |= _positions(tree)
    job = next((flag for flag in _JOB if flag in flags), None)
    index = next((flag for flag in _INDEX if flag in flags), None)
    if job is not None and index is not None:
        found = [f"--{job}={{job}}", f"--{index}={{index}}"]
        for kind, names in _HOSTS.items():
            hosts = next((name for name in names if name in flags), None)
            if hosts is not None and not any(word.startswith(f"--{hosts}") for word in given):
                found.append(f"--{hosts}={{{kind}}}")
        return Spelling(found)
    if "TF_CONFIG" in text or "RunConfig" in text:
        return Spelling((), tf_config=True)
    if {1, 2} <= positions:
        return Spelling(("{job}", "{index}"))
    raise UserError(
        f"{script} does not show how it receives its task: expected flags such as --job_name and "
        "--task_index, TF_CONFIG, or sys.argv; add --task_args='--job={job} --id={index}'"
    )


def _flags(tree: ast.Module) -> list[str]:
    """Returns the names of the flags that a program defines, with any library."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = literals.dotted(node.func).rpartition(".")[2]
        if called.startswith("DEFINE_") or called in ("add_argument", "add_option", "option"):
            words = node.args + [k.value for k in node.keywords if k.arg in ("name", "flag_name")]
            names = [text.lstrip("-") for text in map(literals.text, words) if text]
            found += names[:1] if called.startswith("DEFINE_") else names
    return found


def _positions(tree: ast.Module) -> set[int]:
    """Returns the indices of `sys.argv` that a program reads."""
    return {
        literals.value(node.slice)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "argv"
    }


def run(
    counts: dict[str, int],
    script: str,
    options: Sequence[str],
    arguments: Sequence[str],
    task_args: str | None,
) -> int:
    """Runs all tasks until the training tasks have finished; returns the exit code."""
    if task_args is None:
        how = spelling(conversion.read(script), arguments, script)
    else:
        how = Spelling(task_args.split())
    print(f"compat: arguments of each task: {' '.join(how.arguments) or 'TF_CONFIG'}", flush=True)
    hosts = {job: [f"{job}-{i}.local:2222" for i in range(n)] for job, n in counts.items()}
    python = (sys.executable, "-m", "compat", "run", *options)
    commands = []
    with tempfile.TemporaryDirectory(prefix="compat-run-") as folder:
        for job, index in ((job, i) for job, count in counts.items() for i in range(count)):
            env = {
                "PYTHONUNBUFFERED": "1",
                environment.PORTS: os.path.join(folder, "ports.json"),
                environment.COUNTS: json.dumps(counts),
            }
            if how.tf_config:
                config = {"cluster": hosts, "task": {"type": job, "index": index}}
                env["TF_CONFIG"] = json.dumps(config)
            if job == "ps":
                env["CUDA_VISIBLE_DEVICES"] = "-1"  # Else it would reserve memory of every GPU.
            words = (*python, script, *arguments, *how.words(job, index, hosts))
            commands.append(Command(f"{job} {index}", words, env))
        servers = [command.name for command in commands if command.name.startswith("ps ")]
        with ProcessGroup(commands, servers=servers) as group:
            return group.wait()
