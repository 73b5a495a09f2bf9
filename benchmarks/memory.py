"""Whether the memory of each task stays the same over a long run of `experiments.mnist`.

    python -m benchmarks.memory --updates=100000

Samples the resident memory of all tasks of a cluster by psutil while they train, and prints it by
tenths of the run: medians, in MiB.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import table
from benchmarks.trainings import ROOT, resident

_PARTS = 10


class Sample(NamedTuple):
    """Resident memory of a task, in MiB, when the chief had last printed this step."""

    step: int
    task: str
    memory: float


def measure(runtime: str, workers: int, updates: int, dataset: str, every: float) -> list[Sample]:
    """Trains; returns what was seen from the first printed step to the last."""
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder, Path(folder, "out").open("w+") as out:
        argv = [sys.executable, "-m", "experiments.mnist", "--strategy=ps", f"--runtime={runtime}"]
        argv += [f"--max_steps={updates}", f"--num_workers={workers}", f"--dataset={dataset}"]
        argv += [f"--logdir={folder}/run", f"--tracking_uri=sqlite:///{folder}/runs.db"]
        process = subprocess.Popen(argv, cwd=str(ROOT), stdout=out, stderr=subprocess.STDOUT)
        try:
            step = 0
            while process.poll() is None and step < updates:
                time.sleep(every)
                printed = re.findall(r"Step: (\d+),", Path(folder, "out").read_text())
                step = int(printed[-1]) if printed else 0
                if step:
                    samples += [Sample(step, *each) for each in resident(process.pid).items()]
            if process.wait(300):
                raise SystemExit(Path(folder, "out").read_text()[-2000:])
        finally:
            process.terminate()
            process.wait()
    return samples


def rows(samples: list[Sample], updates: int) -> list[list[str]]:
    """Returns the cells of rows: a task, and its memory in each part of the run."""
    found = []
    for task in sorted({sample.task for sample in samples}):
        parts: list[list[float]] = [[] for _ in range(_PARTS)]
        for step, name, memory in samples:
            if name == task:
                parts[min(_PARTS - 1, step * _PARTS // updates)].append(memory)
        found.append([task, *[f"{median(p):.0f}" if p else "" for p in parts]])
    return found


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runtimes", default="legacy,modern")
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two samples")
    flags = parser.parse_args()
    ends = [f"{(part + 1) * flags.updates // _PARTS:,}" for part in range(_PARTS)]
    header = ["runtime", "task", *[f"to {end}" for end in ends]]
    print(table.head(header))
    for runtime in flags.runtimes.split(","):
        found = measure(runtime, flags.workers, flags.updates, flags.dataset, flags.every)
        for row in rows(found, flags.updates):
            print(table.line([runtime, *row]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
