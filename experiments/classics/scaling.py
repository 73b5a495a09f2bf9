r"""Trains a network with several numbers of workers and compares the results.

    python -m experiments.classics.scaling --workers=1,2,3 --modes=async,sync

Each cell of the grid is a run of experiments.mnist in a cluster on this machine.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from pathlib import Path
from typing import Sequence

from absl import flags

from compat.errors import UserError
from compat.processes.group import MOST_TASKS
from compat.processes.output import open_log
from compat.tracking import FAILED, FINISHED, KILLED, Tracker, store_uri, tracking_command
from compat.tracking.mlflow import run_id
from experiments.launching import command_line, launcher
from experiments.mnist import MNIST
from experiments.report import scaling_table
from experiments.report.scaling_table import Cell, Result
from experiments.settings.flags import check_end, define_flags
from experiments.settings.setting import GROUPS

MODES = ("async", "sync")
RUNTIMES = ("legacy", "modern")
# Settings of the study, which are not passed on to its runs.
_OF_THE_STUDY = {"logdir", "tracking_uri", "experiment_name", "run_name", "parent_run"}

define_flags(MNIST.Settings, groups=[group for group in GROUPS if group != "cluster"])
flags.DEFINE_list("workers", ["1", "2", "3"], "Numbers of workers.")
flags.DEFINE_list("modes", list(MODES), "async: each worker steps on its own; sync: all together.")
flags.DEFINE_list("runtimes", list(RUNTIMES), "See experiments.mnist.")
flags.FLAGS.set_default("experiment_name", "scaling")


def main(values: flags.FlagValues) -> int:
    """Runs every cell of the grid; returns 0, or the exit code of the first that failed."""
    cells = grid(values.workers, values.modes, values.runtimes)
    check_end(values)
    names = [field.name for field in dataclasses.fields(MNIST.Settings)]
    given = [name for name in names if name in values and values[name].present]
    settings = MNIST.Settings(**{name: values[name].value for name in given}).resolved("scaling")
    logdir, name = settings.logdir, settings.experiment_name
    own = [values[name].serialize() for name in given if name not in _OF_THE_STUDY]
    own += [f"--tracking_uri={store_uri(settings.tracking_uri, logdir)}"]
    own += [f"--experiment_name={name}"]
    tracker = Tracker(
        logdir,
        tracking_uri=settings.tracking_uri,
        experiment_name=name,
        run_name=settings.run_name or "scaling",
    )
    status, code = FAILED, 0
    try:
        lists = ("workers", "modes", "runtimes")
        tracker.params({name: ",".join(values[name].value) for name in lists})
        parent = run_id.wait(logdir)
        own += [f"--parent_run={parent}"] if parent else []
        if parent is None:
            print("MLflow does not answer; the runs of the cells have no parent run", flush=True)
        results: list[Result] = []
        for number, cell in enumerate(cells, start=1):
            print(f"{number} of {len(cells)}: {cell.name}", flush=True)
            folder = os.path.join(logdir, cell.name)
            ended = train(cell, [*own, f"--logdir={folder}", f"--run_name={cell.name}"], folder)
            results.append(scaling_table.result(cell, folder, ended))
            print(f"    {results[-1]}", flush=True)
            for path in scaling_table.write(results, logdir):
                tracker.artifact(path)
            code = code or ended
            if ended in (129, 130, 143):  # Exit codes of a hangup, Ctrl-C and SIGTERM.
                status = KILLED
                return ended
        status = FAILED if code else FINISHED
        print(Path(logdir, scaling_table.MARKDOWN).read_text(encoding="utf-8"))
        print(f"Tables, plot:  {logdir}")
        print(f"TensorBoard:   tensorboard --logdir {logdir}")
        print(f"MLflow:        {tracking_command(logdir, settings.tracking_uri)}")
        return code
    finally:
        tracker.close(status)


def grid(workers: Sequence[str], modes: Sequence[str], runtimes: Sequence[str]) -> list[Cell]:
    """Returns the cells, sorted by mode, runtime and number of workers."""
    for flag, given, known in (("modes", modes, MODES), ("runtimes", runtimes, RUNTIMES)):
        for value in given:
            if value not in known:
                raise UserError(f"--{flag}={value} is unknown; give some of {','.join(known)}")
    for value in workers:
        if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) < MOST_TASKS:
            raise UserError(f"--workers={value} is not a list of numbers; give some like 1,2,3")
    for flag, given in (("workers", workers), ("modes", modes), ("runtimes", runtimes)):
        if not given or len(set(given)) < len(given):
            raise UserError(f"--{flag}={','.join(given)} names none or one twice; give each once")
    numbers = sorted(map(int, workers))
    return [Cell(*cell) for cell in itertools.product(modes, runtimes, numbers)]


def train(cell: Cell, own: Sequence[str], folder: str) -> int:
    """Runs one cell of the grid as a cluster, with its output in a file; returns the exit code.

    `own` are the flags of `experiments.mnist` that do not follow from the cell.
    """
    together = cell.mode == "sync" and cell.runtime == "modern"
    joined = [] if together else [f"--runtime={cell.runtime}"]
    joined += ["--sync"] if cell.mode == "sync" and not together else []
    os.makedirs(folder, exist_ok=True)
    with open_log(os.path.join(folder, "output.log")) as out:
        return launcher.launch_local(
            "experiments.mnist",
            [*own, *joined],
            0 if together else 1,
            cell.workers,
            strategy="multi_worker" if together else "ps",
            out=out,
        )


if __name__ == "__main__":
    command_line.run(main)
