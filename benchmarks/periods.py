"""Accuracy and speed over `--communication_period`, by Downpour and by elastic averaging.

    python -m benchmarks.periods --workers=2 --updates=4000

Each cell is a run of `experiments.mnist` as it is, on one parameter server: its test accuracy after
the same number of examples, and updates per second of all workers from a quarter of the run on.
With `--measured=FILE` it can be interrupted, and measures what the file has not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

from benchmarks import plot, table, trainings
from compat.tracking.tensorboard.eventfile import event_files, read_events
from experiments.training.recording.curve_tags import name_of

ALGORITHMS = ("downpour", "easgd")
HEADER = ["runtime", "algorithm", "k", "test accuracy", "updates/s", "to k = 1"]


class Cell(NamedTuple):
    """What is trained; with a period of 1 both algorithms are the same, without a name."""

    runtime: str
    algorithm: str
    period: int


def cells(runtimes: Sequence[str], periods: Sequence[int]) -> list[Cell]:
    """Returns the cells, of each runtime that of period 1 first."""
    found = []
    for runtime in runtimes:
        found.append(Cell(runtime, "", 1))
        found += [Cell(runtime, algorithm, k) for algorithm in ALGORITHMS for k in periods]
    return found


def measure(cell: Cell, flags: argparse.Namespace, folder: str) -> tuple[float, float]:
    """Trains; returns the test accuracy, and the updates per second."""
    logdir = f"{folder}/{'-'.join(map(str, cell))}"
    argv = [f"--runtime={cell.runtime}", f"--max_steps={flags.updates}"]
    argv += [f"--dataset={flags.dataset}", f"--eval_every={10 * flags.updates}"]
    argv += [f"--logdir={logdir}", f"--tracking_uri=sqlite:///{folder}/runs.db"]
    if cell.period > 1:
        argv += [f"--communication_period={cell.period}", f"--algorithm={cell.algorithm}"]
    trainings.launch("experiments.mnist", argv, 1, flags.workers)
    points = [
        (name_of(value.tag), event.step, event.wall_time, value.simple_value)
        for path in event_files(logdir)
        for _, event in read_events(path)
        for value in event.summary.value
    ]
    accuracy = [value for tag, _, _, value in points if tag == "test/accuracy"][-1]
    seen = [(s, t) for tag, s, t, _ in points if tag == "train/cost" and s >= flags.updates // 4]
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


def panel(found: Mapping[Cell, tuple[float, float]], number: int, label: str) -> plot.Panel:
    """Returns the plot of what was measured, accuracy or speed, over the period."""
    lines: dict[str, dict[int, float]] = {}
    for cell, values in found.items():
        for algorithm in [cell.algorithm] if cell.algorithm else ALGORITHMS:
            lines.setdefault(f"{cell.runtime}, {algorithm}", {})[cell.period] = values[number]
    return plot.Panel("updates between two messages (k)", label, lines)


def main() -> int:
    """Measures, draws the plot and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--runtimes", default="legacy,modern")
    parser.add_argument("--periods", default="2,5,10,20,50", help="beside 1")
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    parser.add_argument("--measured", type=Path, help="file of cells: read, and appended to")
    parser.add_argument("--plot", type=Path, default=Path("periods.png"))
    flags = parser.parse_args()
    chosen = cells(flags.runtimes.split(","), [int(k) for k in flags.periods.split(",")])
    found: dict[Cell, tuple[float, float]] = {}
    if flags.measured and flags.measured.exists():
        lines = flags.measured.read_text(encoding="utf-8").splitlines()
        found = {Cell(*cell): tuple(values) for cell, values in map(json.loads, lines)}
    with tempfile.TemporaryDirectory() as folder:
        for cell in chosen:
            if cell not in found:
                found[cell] = measure(cell, flags, folder)
                print(cell, found[cell], file=sys.stderr, flush=True)
                if flags.measured:
                    with flags.measured.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([cell, found[cell]]) + "\n")
    found = {cell: found[cell] for cell in chosen}
    labels = enumerate(("test accuracy", "updates per second"))
    plot.save(flags.plot, [panel(found, *label) for label in labels])
    print(table.markdown(rows(found), HEADER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
