"""What an update costs that all workers make together, beside TensorFlow's and PyTorch's way.

    python -m benchmarks.together --workers=2,3 --pytorch=PYTHON

Each worker computes the gradients of 100 examples in the network of 2016; the update is made of
their mean. The programs run in turn, in rounds: `experiments.mnist --sync` (legacy runtime, one
parameter server), `SyncReplicasOptimizer` by hand, and DistributedDataParallel over gloo, which
needs the path of a Python that has PyTorch. Processor time is that of all processes. Linux.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import table, trainings

_TASK = "benchmarks.together.task"
HEADER = ["workers", "program", "ms an update", "to ours", "lowest", "highest", "CPU ms"]


def measure(program: str, workers: int, argv: list[str], pytorch: str) -> list[list[float]]:
    """Returns wall time and processor time in ms an update, of each round of a program."""
    with tempfile.TemporaryDirectory() as folder:
        if program == "PyTorch":
            command = [pytorch, "-m", "benchmarks.together.ddp"]
            trainings.train("", argv, workers, Path(folder), num_ps=0, command=command)
        else:
            own = ["--by_hand"] if program == "by hand" else []
            # By hand a worker may wait for one that has ended, and a server for ever.
            others = [f"worker {index}" for index in range(1, workers)]
            endless = ["ps 0", *(others if own else [])]
            trainings.train(_TASK, [*argv, *own], workers, Path(folder), endless)
        logs = [Path(folder, f"worker {index}.log").read_text() for index in range(workers)]
    found = [[json.loads(line) for line in log.splitlines() if line[:1] == "["] for log in logs]
    return [
        [max(wall for wall, _, _ in each), sum(own + server for _, own, server in each)]
        for each in zip(*found)
    ]


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", default="2,3")
    parser.add_argument("--starts", type=int, default=3, help="of each program, in turn")
    parser.add_argument("--rounds", type=int, default=3, help="of each start")
    parser.add_argument("--updates", type=int, default=400, help="of each round; a multiple of 20")
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    parser.add_argument("--pytorch", default="", help="a Python that has PyTorch")
    flags = parser.parse_args()
    argv = [f"--updates={flags.updates}", f"--rounds={flags.rounds}"]
    argv += [f"--dataset={flags.dataset}", "--max_steps=0", "--warm_up=0"]
    programs = ["ours", "by hand", *(["PyTorch"] if flags.pytorch else [])]
    print(table.head(HEADER))
    for workers in map(int, flags.workers.split(",")):
        found: dict[str, list[list[float]]] = {program: [] for program in programs}
        for _ in range(flags.starts):
            for program in programs:
                found[program] += measure(program, workers, argv, flags.pytorch)
        for program, rounds in found.items():
            ratios = [wall / mine for (wall, _), (mine, _) in zip(rounds, found["ours"])]
            wall, cpu = (median(column) for column in zip(*rounds))
            cells = [wall, median(ratios), min(ratios), max(ratios), cpu]
            shown = [f"{cell:.2f}" for cell in cells]
            print(table.line([str(workers), program, *shown]), flush=True)
        if not flags.pytorch:
            print(f"| {workers} | PyTorch | not measured |  |  |  |  |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
