"""Launches any program as the tasks of a cluster on this machine.

    python -m experiments.launch --num_ps=1 --num_workers=2 -- train.py --epochs=3
    python -m experiments.launch -- python -m compat run old_script.py

The program is a Python script, `-m` and a module, or a command; `python` stands for the Python that
runs the launcher. Each task gets its TF_CONFIG in the environment. If the program's source defines
flags such as --job_name, --task_index and --ps_hosts, each task gets these after its arguments.
Each line that a task prints is shown after the task's name.

All processes end with the launcher. A task that fails ends the others, and its exit code becomes
that of the launcher. Parameter servers are stopped when all other tasks have ended with 0.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import Iterator, Mapping, Sequence, TextIO

from compat.cluster.spec import checked_cluster
from compat.errors import Parser, UserError, reason_of
from compat.processes.command import run as run_command
from compat.processes.local_cluster import LocalCluster, commands
from compat.processes.output import open_log
from compat.scripts.clusters import tasks
from compat.scripts.clusters.task_arguments import Spelling
from experiments.launching import manifests, program

_USAGE = "python -m experiments.launch [options] -- PROGRAM [arguments of the program]"
# Exit codes after which a task is not restarted: of Ctrl-C, and of a wrong command line.
_PERMANENT = (130, UserError.exit_code)
_CHIEF_PATIENCE_SECS = 10.0
_JOBS = ("chief", "ps", "worker")
_MANIFESTS = {
    "jobset": manifests.job_set,
    "trainjob": manifests.train_job,
    "tfjob": manifests.tf_job,
}
_KINDS = "jobset, trainjob or tfjob"


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit code."""
    own, words = _split(argv)
    options = parser().parse_args(own)
    counts, hosts = _cluster(options)
    command = program.command(words)
    how = program.task_arguments(options.flags, command, counts)
    if options.dry_run is None:
        shown = " ".join(["TF_CONFIG", *how.arguments])
        print(f"launch: each task gets {shown}", flush=True)
        return _launch(command, counts, how, options)
    _print(command, counts, hosts, how, options)
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments before `--`."""
    parser = Parser(
        prog="python -m experiments.launch",
        usage=_USAGE,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--num_ps", type=int, metavar="N", help="parameter servers (default: 1)")
    add("--num_workers", type=int, metavar="N", help="workers (default: 2)")
    add("--chief", action="store_true", help="start a chief, too (default: worker 0 is the chief)")
    add("--evaluator", action="store_true", help="an evaluator, whose failure ends no other task")
    add(
        "--flags",
        default="auto",
        help="what each task gets after its arguments: auto (default), those flags of a task that "
        "the program's source defines; none; hosts, --job_name, --task_index, --ps_hosts and "
        "--worker_hosts; or a text such as '--job={job} --id={index} --ps={ps} --w={worker}', "
        "where {cluster} is ps|HOST:PORT,worker|HOST:PORT;HOST:PORT",
    )
    add("--log_dir", metavar="DIR", help="also write what each task prints to DIR/JOB-INDEX.log")
    add(
        "--max_restarts",
        type=int,
        metavar="N",
        help="start a failed task again, N times at most (default: 0), after 1 s, 2 s, 4 s and so "
        f"on; not after exit code {UserError.exit_code}, which stands for a wrong command line",
    )
    add(
        "--dry_run",
        nargs="?",
        const="shell",
        choices=("shell", *_MANIFESTS),
        help="start nothing, and print the command line and the environment of each task; or, with "
        f"={_KINDS}, a manifest for Kubernetes",
    )
    add("--image", help=f"with --dry_run={_KINDS}: the image that has the program")
    for job in _JOBS:
        add(
            f"--{job}_hosts",
            metavar="H:P,...",
            help=f"with --dry_run: addresses of the job {job} (default: ports of this machine)",
        )
    return parser


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Returns the arguments before and after the first "--"."""
    if "--" in argv:
        return argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    if {"-h", "--help"} & set(argv):
        return argv, ()
    wrong = f"{' '.join(argv)!r} has no -- before the program" if argv else "no program was given"
    raise UserError(f"{wrong}; usage: {_USAGE}")


def _cluster(options: argparse.Namespace) -> tuple[dict[str, int], dict[str, list[str]] | None]:  # noqa: C901
    """Returns the number of tasks of each job, and the addresses of each job or None."""
    hosts = {job: getattr(options, f"{job}_hosts") for job in _JOBS}
    given = {job: words.split(",") for job, words in hosts.items() if words is not None}
    for name, number in (("num_ps", options.num_ps), ("num_workers", options.num_workers)):
        if number is not None and number < 0:
            raise UserError(f"--{name}={number} is negative; use 0 or more")
        if number is not None and given:
            raise UserError(
                f"--{name} and lists of hosts both give the tasks; leave out one of them"
            )
    if (options.max_restarts or 0) < 0:
        raise UserError(f"--max_restarts={options.max_restarts} is negative; use 0 or more")
    if options.image is not None and options.dry_run is None:
        raise UserError(f"--image has no effect without --dry_run={_KINDS}; leave it out")
    if given and options.dry_run is None:
        raise UserError(
            f"--{next(iter(given))}_hosts names hosts, and tasks are started on this machine only; "
            "add --dry_run for command lines to start there, or leave the hosts out"
        )
    if given and options.chief and "chief" not in given:
        raise UserError("--chief has no address beside lists of hosts; add --chief_hosts=host:port")
    counts = {job: len(addresses) for job, addresses in checked_cluster(given).as_dict().items()}
    if not given:
        counts["chief"] = int(options.chief)
        counts["ps"] = 1 if options.num_ps is None else options.num_ps
        counts["worker"] = 2 if options.num_workers is None else options.num_workers
    counts = {job: counts[job] for job in _JOBS if counts.get(job)}
    if set(counts) <= {"ps"}:
        raise UserError("the cluster has no task that trains; add workers or a chief")
    if counts.get("chief", 0) > 1:
        raise UserError(f"--chief_hosts has {counts['chief']} addresses; give one")
    return counts, given or None


def _launch(
    command: Sequence[str], counts: Mapping[str, int], how: Spelling, options: argparse.Namespace
) -> int:
    env, fork_server = program.forking(command)
    names = [f"{job} {index}" for job, count in counts.items() for index in range(count)]
    names += ["evaluator 0"] if options.evaluator else []
    with _logs(options.log_dir, names) as logs:
        return tasks.launch(
            command,
            counts,
            how,
            env,
            evaluator=options.evaluator,
            fork_server=fork_server,
            chief="chief 0" if "chief" in counts else None,
            patience=_CHIEF_PATIENCE_SECS,
            overdue=0,  # Servers of the modern runtime never end by themselves.
            max_restarts=options.max_restarts or 0,
            is_retryable=lambda code: code not in _PERMANENT,
            logs=logs,
        )


@contextlib.contextmanager
def _logs(folder: str | None, names: Sequence[str]) -> Iterator[dict[str, TextIO]]:
    """Opens an empty log file for each task, by the task's name; creates the folder."""
    with contextlib.ExitStack() as stack:
        logs: dict[str, TextIO] = {}
        try:
            for name in names if folder is not None else ():
                os.makedirs(str(folder), exist_ok=True)
                path = Path(str(folder), name.replace(" ", "-") + ".log")
                logs[name] = stack.enter_context(open_log(path))
        except OSError as error:
            raise UserError(
                f"--log_dir={folder} cannot be written to ({reason_of(error)}); name another folder"
            ) from None
        yield logs


def _print(
    command: Sequence[str],
    counts: Mapping[str, int],
    hosts: Mapping[str, Sequence[str]] | None,
    how: Spelling,
    options: argparse.Namespace,
) -> None:
    """Prints the commands of all tasks, or a manifest for Kubernetes, as `--dry_run` asks."""
    manifest = _MANIFESTS.get(options.dry_run)
    useless = ["log_dir", "max_restarts" if manifest is None else ""]
    useless += [f"{job}_hosts" for job in _JOBS] if manifest else ["image"]
    for name in useless:
        if getattr(options, name, None) is not None:
            raise UserError(
                f"--{name} has no effect with --dry_run={options.dry_run}; leave it out"
            )
    elsewhere = hosts is not None or manifest is not None
    if elsewhere:  # On another machine, Python may be in another folder.
        command = [word if word != sys.executable else "python" for word in command]
    if manifest is not None:
        if not options.image:
            raise UserError(
                f"--dry_run={options.dry_run} needs the program's image; add --image=NAME"
            )
        more = options.evaluator, options.max_restarts or 0
        print(manifest(manifests.Pods(command, counts, how, options.image, *more)), end="")
        return
    with contextlib.ExitStack() as stack:
        places = hosts or stack.enter_context(LocalCluster(counts)).hosts
        found = commands(
            places,
            lambda task: (*command, *how.words(task.job, task.index, places)),
            evaluator=options.evaluator,
            variables=lambda task: how.environment(task, places),
        )
        print(manifests.shell(found, places), end="")


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))
