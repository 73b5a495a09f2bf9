"""What steps cost that compute nothing, and a model of it that is held against measurements.

    python -m benchmarks.null_steps --measured=null_steps.json
    python -m benchmarks.null_steps --measured=null_steps.json --bandwidth=1250

As in section 6.2 of "TensorFlow: A System for Large-Scale Machine Learning" (OSDI 2016), a step
pulls variables from parameter servers and pushes updates of the same size: a scalar of each server,
1 MB or 100 MB in equal parts, or 32 rows of a table. One cluster, whose tasks are forked from one
process, measures all; tasks that a row does not need wait. Linux, legacy runtime.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from itertools import product
from pathlib import Path
from statistics import median
from typing import Sequence

from benchmarks import table, trainings
from benchmarks.null_steps.model import Cell, Cost, Model, cost, is_fitted

NEAR = 0.2
HEADER = ["a step moves", "workers", "ps", "ms (lowest to highest)", "predicted", "ratio"]
HEADER += ["CPU ms", "predicted"]
# Of the paper: ms of a step, where workers are synchronous.
PAPER = {
    Cell("scalar", 1, 16): 1.8,
    Cell("scalar", 100, 16): 8.8,
    Cell("100 MB", 1, 16): 147,
    Cell("100 MB", 100, 16): 613,
    Cell("1 GB", 1, 16): 1010,
    Cell("1 GB", 100, 16): 7160,
}
PAPER_HEADER = ["a step moves", "workers", "ps", "ms in the paper", "predicted", "ratio"]


def measure(
    cells: Sequence[Cell], rounds: int, seconds: float, rows: int
) -> dict[Cell, list[Cost]]:
    """Runs a cluster; returns what a step took in each round, of each cell."""
    argv = [f"--cells={json.dumps(cells)}", f"--rounds={rounds}", f"--seconds={seconds}"]
    counts = max(cell.servers for cell in cells), max(cell.workers for cell in cells)
    argv += [f"--table={rows}"]
    output = trainings.launch("benchmarks.null_steps.task", argv, *counts)
    lines = (line.partition("] ")[2] for line in output.splitlines())
    printed = [json.loads(line) for line in lines if line.startswith("[")]
    found: dict[Cell, list[Cost]] = {}
    for cell, turn in product(cells, range(rounds)):
        mine = [each[2:] for each in printed if each[:2] == [turn, list(cell)]]
        found.setdefault(cell, []).append(cost(mine))
    return found


def row(cell: Cell, costs: Sequence[Cost], predicted: Cost, fitted: bool) -> list[str]:
    """Returns the cells of a row of the table."""
    walls, cpu = [each.wall for each in costs], median(each.cpu for each in costs)
    wall = median(walls)
    ratio = f"{predicted.wall / wall:.2f}" + (", fitted" if fitted else "")
    spread = f"{wall:.2f} ({min(walls):.2f} to {max(walls):.2f})"
    numbers = [f"{predicted.wall:.2f}", ratio, f"{cpu:.2f}", f"{predicted.cpu:.2f}"]
    return [cell.kind, str(cell.workers), str(cell.servers), spread, *numbers]


def main() -> int:
    """Measures, fits, and prints both; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measured", type=Path, help="file to read, or to write if there is none")
    parser.add_argument("--kinds", default="scalar,1 MB,100 MB,32 rows", help="what steps move")
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--servers", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row in a round")
    parser.add_argument("--rows", type=int, default=1000000, help="of the table, 64 numbers wide")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="of this machine")
    parser.add_argument("--bandwidth", type=float, default=2000, help="of the paper's links, MB/s")
    parser.add_argument("--apart", type=int, default=8, help="cores of the paper's machines")
    flags = parser.parse_args()
    if flags.measured and flags.measured.exists():
        read = json.loads(flags.measured.read_text(encoding="utf-8"))
        found = {Cell(*cell): [Cost(*each) for each in costs] for cell, costs in read}
    else:
        counts = (map(int, number.split(",")) for number in (flags.workers, flags.servers))
        cells = [Cell(*each) for each in product(flags.kinds.split(","), *counts)]
        found = measure(cells, flags.rounds, flags.seconds, flags.rows)
        if flags.measured:
            flags.measured.write_text(json.dumps([*found.items()]) + "\n", encoding="utf-8")
    medians = {cell: Cost(*map(median, zip(*costs))) for cell, costs in found.items()}
    model = Model(medians, flags.cores)
    rows = [row(c, found[c], model.predict(c), is_fitted(c, found)) for c in found]
    print(table.markdown(rows, HEADER))
    for name, parameters in vars(model).items():
        if not name.startswith("_"):
            step, message, megabyte, *of_one = parameters
            text = f"{name}: {step:.2f} ms a step, {message:.2f} a message, {megabyte:.3f} a MB"
            print(text + "".join(f", {each:.3f} a MB of one server" for each in of_one))
    held = [cell for cell in found if not is_fitted(cell, found)]
    near = sum(abs(model.predict(c).wall / medians[c].wall - 1) <= NEAR for c in held)
    print(f"{near} of {len(held)} that were not fitted are predicted within {NEAR:.0%}\n")
    rows = []
    for cell, taken in PAPER.items():
        predicted = model.apart(cell, flags.apart, flags.bandwidth)
        numbers = f"{taken:g}", f"{predicted:.1f}", f"{predicted / taken:.2f}"
        rows.append([cell.kind, str(cell.workers), str(cell.servers), *numbers])
    print(table.markdown(rows, PAPER_HEADER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
