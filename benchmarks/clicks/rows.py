"""What a step costs that looks up and updates rows of a table, over the rows that the table has.

    python -m benchmarks.clicks.rows --rows=10000,100000,1000000,10000000

A step reads 512 x 26 random ids, as a batch of `experiments.recommender` does, and applies made-up
gradients by each optimizer, in one process, on the legacy runtime. Optimizers take turns, in
rounds. Adam at 10,000,000 rows of 64 needs about 18 GB of memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from benchmarks import plot, table
from experiments.datasets.criteo import CATEGORIES
from experiments.launching.command_line import quiet_tensorflow

BATCH = 512
_LEAST = 3  # Steps, before the clock starts and after.


class Cell(NamedTuple):
    """What is measured."""

    rows: int
    optimizer: str


class Cost(NamedTuple):
    """What a step took, in ms, and how many rows it read on average."""

    wall: float
    cpu: float
    read: float


def train(cell: Cell, width: int) -> Any:
    """Returns the operations of a step: its update, and the number of rows that it reads."""
    from compat import tf, tf1
    from compat.runtime.program import variables
    from experiments.training.updates import optimizers
    from models import embeddings

    weights = np.random.RandomState(1).standard_normal([CATEGORIES, width])
    ids = tf.random.uniform([BATCH, CATEGORIES], 0, 2**40, tf.int64)
    rows = embeddings.Rows(ids, [cell.rows // CATEGORIES] * CATEGORIES)
    with tf1.variable_creator_scope(variables.create):
        found = rows.lookup(embeddings.table("table", rows.total, width))
        loss = tf.reduce_sum(found * tf.constant(weights, tf.float32))
        trained = tf1.trainable_variables()
        changes = zip(tf1.gradients(loss, trained), trained)
        update = optimizers.create(cell.optimizer, 1e-3).apply_gradients([*changes])
    return update, tf.size(rows.unique)


def measure(cell: Cell, width: int, seconds: float) -> Cost:
    """Makes steps for some seconds."""
    from compat import tf1

    with tf1.Graph().as_default():
        step = train(cell, width)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(_LEAST):
                session.run(step)
            read: list[int] = []
            wall, cpu = time.perf_counter(), time.process_time()
            while len(read) < _LEAST or time.perf_counter() - wall < seconds:
                read.append(session.run(step)[1])
            spent = time.perf_counter() - wall, time.process_time() - cpu
    wall, cpu = (1e3 * each / len(read) for each in spent)
    return Cost(wall, cpu, sum(read) / len(read))


def row(rows: int, found: Mapping[Cell, Sequence[Cost]]) -> list[str]:
    """Returns the cells of a row of the table: CPU ms of each optimizer, and their range."""
    costs = {cell.optimizer: each for cell, each in found.items() if cell.rows == rows}
    read = median(cost.read for each in costs.values() for cost in each)
    shown = []
    for each in costs.values():
        cpu = [cost.cpu for cost in each]
        shown.append(f"{median(cpu):.1f} ({min(cpu):.1f} to {max(cpu):.1f})")
    return [f"{rows:,}", f"{read:,.0f}", *shown]


def panel(found: Mapping[Cell, Sequence[Cost]]) -> plot.Panel:
    """Returns the plot of processor time over the rows, a line for each optimizer."""
    lines: dict[str, dict[int, float]] = {}
    for cell, costs in found.items():
        lines.setdefault(cell.optimizer, {})[cell.rows] = median(cost.cpu for cost in costs)
    return plot.Panel("rows of the table", "processor time of a step, ms", lines, "log")


def main() -> int:
    """Measures, draws the plot and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", default="10000,100000,1000000,10000000")
    parser.add_argument("--optimizers", default="adagrad,rowwise_adagrad,lazy_adam,adam")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row in a round")
    parser.add_argument("--plot", type=Path, default=Path("rows.png"))
    flags = parser.parse_args()
    quiet_tensorflow()
    rows, optimizers = [int(each) for each in flags.rows.split(",")], flags.optimizers.split(",")
    found: dict[Cell, list[Cost]] = {Cell(*each): [] for each in product(rows, optimizers)}
    for _, cell in product(range(flags.rounds), found):
        found[cell].append(measure(cell, flags.width, flags.seconds))
        print(cell, found[cell][-1], file=sys.stderr, flush=True)
    plot.save(flags.plot, [panel(found)])
    header = ["rows of the table", "different rows in a batch", *optimizers]
    print(table.markdown([row(each, found) for each in rows], header))
    return 0


if __name__ == "__main__":
    sys.exit(main())
