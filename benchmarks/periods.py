"""Accuracy and speed over `--communication_period`, by Downpour and by elastic averaging.

    python -m benchmarks.periods --workers=2 --updates=4000

Each cell is a run of `experiments.mnist` as it is, on one parameter server: its test accuracy after
the same number of examples, and updates per second of all workers from a quarter of the run on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from benchmarks import local_cluster, table
from compat.tracking.tensorboard.eventfile import event_files, read_events

PERIODS = (1, 2, 5, 10, 20, 50)
HEADER = ["runtime", "algorithm", "k", "test accuracy", "updates/s", "to k = 1"]


class Cell(NamedTuple):
    """What is trained; with a period of 1 both algorithms are the same, without a name."""

    runtime: str
    algorithm: str
    period: int


def cells(runtimes: list[str]) -> list[Cell]:
    """Returns the cells, of each runtime those of period 1 first."""
    return [
        Cell(runtime, algorithm, period)
        for runtime in runtimes
        for algorithm, periods in [("", [1]), ("downpour", PERIODS[1:]), ("easgd", PERIODS[1:])]
        for period in periods
    ]


def measure(cell: Cell, workers: int, updates: int, dataset: str) -> tuple[float, float]:
    """Trains; returns the test accuracy, and the updates per second."""
    with tempfile.TemporaryDirectory() as folder:
        logdir = f"{folder}/run"
        argv = [f"--runtime={cell.runtime}", f"--max_steps={updates}", f"--dataset={dataset}"]
        argv += [f"--logdir={logdir}", f"--tracking_uri=sqlite:///{folder}/runs.db"]
        argv += [f"--eval_every={10 * updates}"]
        if cell.period > 1:
            argv += [f"--communication_period={cell.period}", f"--algorithm={cell.algorithm}"]
        local_cluster.train("experiments.mnist", argv, workers, Path(folder))
        points = [
            (value.tag, event.step, event.wall_time, value.simple_value)
            for path in event_files(logdir)
            for _, event in read_events(path)
            for value in event.summary.value
        ]
    accuracy = [value for tag, _, _, value in points if tag == "test/accuracy"][-1]
    seen = [(s, t) for tag, s, t, _ in points if tag == "train/cost" and s >= updates // 4]
    (first, began), (last, ended) = seen[0], seen[-1]
    return accuracy, (last - first) / (ended - began)


def rows(found: Mapping[Cell, tuple[float, float]]) -> list[list[str]]:
    """Returns the cells of the table, a row for each cell that was measured."""
    cells = []
    for cell, (accuracy, rate) in found.items():
        alone = found[Cell(cell.runtime, "", 1)][1]
        shown = [cell.runtime, cell.algorithm or "both", str(cell.period), f"{accuracy:.3f}"]
        cells.append([*shown, f"{rate:.0f}", f"{rate / alone:.1f}"])
    return cells


def plot(found: Mapping[Cell, tuple[float, float]], path: Path) -> None:
    """Draws accuracy and speed over the period."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6))
    for number, label in enumerate(("test accuracy", "updates per second")):
        axes: Any = figure.add_subplot(1, 2, number + 1)
        for runtime, algorithm in dict.fromkeys((c.runtime, c.algorithm) for c in found):
            if algorithm:
                line = [Cell(runtime, "", 1), *[Cell(runtime, algorithm, k) for k in PERIODS[1:]]]
                values = [found[cell][number] for cell in line]
                axes.plot(PERIODS, values, marker="o", label=f"{runtime}, {algorithm}")
        axes.set(xscale="log", xlabel="updates between two messages (k)", ylabel=label)
        axes.set_xticks(PERIODS, [str(period) for period in PERIODS])
        axes.minorticks_off()
        axes.grid(True)
    axes.legend()
    figure.tight_layout()
    figure.savefig(str(path), dpi=100)


def main() -> int:
    """Measures, draws the plot and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--runtimes", default="legacy,modern")
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    parser.add_argument("--plot", type=Path, default=Path("periods.png"))
    flags = parser.parse_args()
    found = {}
    for cell in cells(flags.runtimes.split(",")):
        found[cell] = measure(cell, flags.workers, flags.updates, flags.dataset)
        print(cell, found[cell], file=sys.stderr, flush=True)
    plot(found, flags.plot)
    print(table.markdown(rows(found), HEADER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
