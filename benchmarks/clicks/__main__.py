"""`experiments.recommender` beside the same model by hand on TensorFlow 1.15.

    python -m benchmarks.clicks --rounds=3 --tensorflow1=/path/to/python
    python -m benchmarks.clicks --num_ps=2 --num_workers=2 --tensorflow1=/path/to/python

In one process, or in a cluster, whose processor time is that of all tasks. Wide & deep with 26
tables of 10,000 x 64 and layers of 1024, 512 and 256 units, batches of 512, on files of made-up
clicks in Criteo's format, with Adagrad. The program by hand runs on TensorFlow 1.15 as it is, and
under `python -m compat run`; in one process both also without tables and input, which is the least
that the layers take. All run in turn, and processor time is the steadier figure on a shared
machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import table, trainings
from benchmarks.trainings import ROOT
from experiments.datasets.clicks import Law

VALUES = 50000  # Of the largest category.
FILES = {**{f"train-{i}": 50000 for i in range(4)}, "validation": 10000, "test": 10000}
MODEL = ["--batch_size=512", "--buckets=10000", "--width=64", "--hidden=1024,512,256"]
MODEL += ["--learning_rate=0.05", "--warm_up=20"]
TWIN = "benchmarks/clicks/twin.py"
HEADER = ["program", "ms an update", "CPU ms", "first/this, CPU", "lowest", "highest", "AUC"]


def sides(
    tensorflow1: str, pytorch: str = "", python: str = sys.executable
) -> dict[str, list[str]]:
    """Returns the commands by the names of what they measure; the first is what others beat."""
    ours = [python, "-m", "benchmarks.clicks.task", "--eval_every=1000000"]
    by_hand = {
        "by hand, TensorFlow 1.15": [tensorflow1, TWIN],
        "its layers alone": [tensorflow1, TWIN, "--alone"],
        "by hand, `compat run`": [python, "-m", "compat", "run", TWIN],
        "its layers alone, `compat run`": [python, "-m", "compat", "run", TWIN, "--alone"],
    }
    for runtime in ("legacy", "modern"):
        by_hand[f"ours, {runtime}"] = [*ours, f"--runtime={runtime}"]
        mapped = [*ours, f"--runtime={runtime}", "--ids=mapped"]
        by_hand[f"ours, {runtime}, mapped ids"] = mapped
    by_hand["ours, legacy, bfloat16"] = [*ours, "--runtime=legacy", "--precision=bfloat16"]
    if pytorch:
        by_hand["PyTorch, one process"] = [pytorch, "-m", "benchmarks.clicks.pytorch"]
    return by_hand


def measure(
    command: list[str], flags: list[str], folder: str, num_ps: int = 0, num_workers: int = 1
) -> dict[str, float]:
    """Runs a program once; returns seconds of an update, `wall` and `cpu`, and `auc`."""
    logdir = tempfile.mkdtemp(dir=folder)
    ours = "benchmarks.clicks.task" in command
    if ours:
        flags = [*flags, f"--logdir={logdir}/run", f"--tracking_uri=sqlite:///{folder}/runs.db"]
    if num_ps and "pytorch" not in command[-1]:
        endless = [] if ours else [f"ps {index}" for index in range(num_ps)]
        module, own = ("benchmarks.clicks.task", []) if ours else ("", command)
        flags = [*command[3:], *flags] if ours else flags
        cluster = (num_workers, Path(logdir), endless, 900.0, num_ps, own)
        return result(trainings.train(module, flags, *cluster).output)
    done = subprocess.run(
        [*command, *flags],
        cwd=str(ROOT),
        capture_output=True,
        timeout=900,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode()[-2000:]}")
    return result(done.stdout.decode())


def result(output: str) -> dict[str, Any]:
    """Returns what a program printed as its last line of JSON."""
    lines = reversed(output.splitlines())
    return dict(json.loads(next(line for line in lines if line.startswith("{"))))


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=220, help="of each run, above 20")
    parser.add_argument("--num_ps", type=int, default=0, help="0: no cluster")
    parser.add_argument("--num_workers", type=int, default=1)
    parser.add_argument("--only", default="", help="those whose name has this regular expression")
    parser.add_argument("--tensorflow1", required=True, help="Python that has TensorFlow 1.15")
    parser.add_argument("--pytorch", default="", help="Python that has PyTorch; else not measured")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)  # Of programs that are started by their path.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Threads of PyTorch that wait for others sleep; else they take four times the processor time.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        Law(values=VALUES).write(f"{folder}/clicks", FILES)
        flags = [*MODEL, f"--data_dir={folder}/clicks", f"--max_steps={given.updates}"]
        for _ in range(given.rounds):
            for name, command in sides(given.tensorflow1, given.pytorch).items():
                if not re.search(given.only, name) or (given.num_ps and "alone" in name):
                    continue
                made = measure(command, flags, folder, given.num_ps, given.num_workers)
                found.setdefault(name, []).append(made)
                print(name, found[name][-1], file=sys.stderr, flush=True)
    first = next(iter(found.values()))
    print(table.head(HEADER))
    for name, runs in found.items():
        ratios = [one["cpu"] / other["cpu"] for one, other in zip(first, runs)]
        times = [1e3 * median(run[key] for run in runs) for key in ("wall", "cpu")]
        cells = [f"{time:.0f}" for time in times]
        cells += [f"{ratio:.2f}" for ratio in (median(ratios), min(ratios), max(ratios))]
        auc = median(run["auc"] for run in runs)
        cells.append("" if "alone" in name else f"{auc:.3f}")
        print(table.line([name, *cells]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
