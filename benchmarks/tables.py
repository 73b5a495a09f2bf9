"""Where the tables of `experiments.recommender` are in memory: on parameter servers only.

    python -m benchmarks.tables --rows=1000000
    python -m benchmarks.tables --rows=10000000 --leave

Wide & deep of width 64 with Adagrad on two parameter servers and two workers, trained twice: with
tables of so many rows, and of as few that they count nothing. What a process takes more in the
first is what it holds of the tables: in training, at the last update, and at most, which is when
worker 0, the chief, saves the checkpoint. With `--leave` none is saved, and only the former shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import table, trainings
from benchmarks.clicks.__main__ import result
from experiments.datasets.criteo import CATEGORIES

WIDTH = 64
SERVERS = WORKERS = 2
FEW = 40 * CATEGORIES
HEADER = ["runtime", "process", "its part of the tables", "training", "more", "at most", "more"]


def part(rows: int) -> float:
    """Returns the MiB of tables on a server: a row of each table, and its accumulators."""
    return rows * (WIDTH + 1) * 2 * 4 / SERVERS / (1 << 20)


def measure(runtime: str, rows: int, flags: Any, folder: str) -> list[dict[str, float]]:
    """Returns the resident set of each process, in MiB, at the last update and at most."""
    logdir = tempfile.mkdtemp(dir=folder)
    argv = [f"--runtime={runtime}", f"--max_steps={flags.updates}", f"--width={WIDTH}"]
    argv += [f"--buckets={rows // CATEGORIES}", "--examples=20000", "--values=50000"]
    argv += ["--checkpoint_every=1000000", "--eval_every=1000000", "--system_metrics_every=0"]
    argv += [f"--logdir={logdir}/run", f"--tracking_uri=sqlite:///{folder}/runs.db"]
    argv += ["--leave"] if flags.leave else []
    endless = ["ps 0", "ps 1", "worker 1"] if flags.leave else []
    module = "benchmarks.clicks.task"
    done = trainings.train(module, argv, WORKERS, Path(logdir), endless, num_ps=SERVERS)
    return [result(done.output)["memory"], done.peaks]


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1000000, help="of all categories")
    parser.add_argument("--updates", type=int, default=60, help="60 or more")
    parser.add_argument("--runtimes", default="legacy,modern")
    parser.add_argument("--leave", action="store_true", help="do not save a checkpoint")
    flags = parser.parse_args()
    header = HEADER[:5] if flags.leave else HEADER
    print(table.head(header))
    with tempfile.TemporaryDirectory() as folder:
        for runtime in flags.runtimes.split(","):
            few, many = (measure(runtime, rows, flags, folder) for rows in (FEW, flags.rows))
            for task in sorted(many[0]):
                cells = [part(flags.rows) if task.startswith("ps") else 0.0]
                for less, more in zip(few, many):
                    cells += [more[task], more[task] - less[task]]
                shown = [f"{cell:.0f}" for cell in cells[: len(header) - 2]]
                print(table.line([runtime, task, *shown]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
