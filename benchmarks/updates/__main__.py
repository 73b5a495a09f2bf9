"""Updates of the network of 2016 on a parameter server, side by side with programs by hand.

    python -m benchmarks.updates --rounds=5 --updates=4000 --pytorch=/path/to/python

Each program runs as real processes, one after the other, round by round: machines differ and are
shared, so only ratios within a round say something. Processor time is that of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import median

from benchmarks import table, trainings

_MOST_WARM_UP = 500  # Updates before the clock starts: tracing, first connections.
_EXAMPLE = "benchmarks/updates/example_2016.py"
# Without lines, and points of curves, which MLflow gets as well.
_UNWATCHED = ("--log_every=1000000", "--summary_every=1000000")


@dataclass(frozen=True)
class Way:
    """A program that trains the network, and how it is run."""

    name: str
    module: str  # Understands the flags of a task.
    argv: tuple[str, ...] = ()
    runtime: str = "legacy"  # On the modern one all workers but the first only serve.
    command: tuple[str, ...] = ()  # In place of `python -m module`.

    def endless(self, workers: int) -> list[str]:
        """Returns the tasks that do not end by themselves."""
        if self.module == "benchmarks.updates.ours":
            return []
        others = range(1, workers) if self.runtime == "modern" else ()
        return ["ps 0", *[f"worker {index}" for index in others]]


@dataclass(frozen=True)
class Measurement:
    """A run, from the end of the warm-up to the last update."""

    wall: float  # Milliseconds an update, of all workers together.
    cpu: float  # Milliseconds of processor time an update, of all tasks.
    peak: float  # The largest resident sets of all tasks, MiB.
    cost: float  # At the last update, in nats per example.


def ways(pytorch: str) -> list[Way]:
    """Returns all programs; the first is what the others are compared with."""
    example = (sys.executable, "-m", "compat", "run", _EXAMPLE)
    ours, legacy, modern = (
        "benchmarks.updates.ours",
        "benchmarks.updates.twin_legacy",
        "benchmarks.updates.twin_modern",
    )
    found = [
        Way("the example of 2016, `compat run`", "", command=example),
        Way("by hand, v1, fed", legacy),
        Way("by hand, v1, 20 updates a call", legacy, ("--packed=20",)),
        Way("by hand, PSS, 1 update a closure", modern, ("--packed=1",), "modern"),
        Way("by hand, PSS, 50 updates a closure", modern, ("--packed=50",), "modern"),
    ]
    for runtime in ("legacy", "modern"):
        given = f"--runtime={runtime}", "--preset=2016"
        found += [
            Way(f"ours, {runtime}", ours, (f"--runtime={runtime}",), runtime),
            Way(f"ours, {runtime}, preset 2016", ours, given, runtime),
            Way(f"ours, {runtime}, preset 2016, unwatched", ours, (*given, *_UNWATCHED), runtime),
            Way(
                f"ours, {runtime}, preset 2016, period 20",
                ours,
                (*given, "--communication_period=20"),
                runtime,
            ),
        ]
    found += [
        Way("without messages, v1, fed", legacy, ("--alone",)),
        Way("without messages, v1, 20 updates a call", legacy, ("--alone", "--packed=20")),
        Way("318 KB down and up", "benchmarks.updates.loopback"),
    ]
    if pytorch:
        found.append(Way("PyTorch", "", command=(pytorch, "benchmarks/updates/twin_torch.py")))
    return found


def measure(way: Way, workers: int, updates: int, dataset: str) -> Measurement:
    """Runs a program once."""
    warm_up = min(_MOST_WARM_UP, updates // 200 * 100)
    argv = [f"--max_steps={updates}", f"--dataset={dataset}", *way.argv]
    with tempfile.TemporaryDirectory() as folder:
        if way.module == "benchmarks.updates.ours":
            argv += [f"--logdir={folder}/run"]
            os.environ["WARM_UP"] = str(warm_up)
        else:
            argv += [f"--warm_up={warm_up}"]
        done = trainings.train(
            way.module,
            argv,
            workers,
            Path(folder),
            way.endless(workers),
            command=way.command,
        )
    line = next(line for line in done.output.splitlines() if line.startswith('{"steps"'))
    clock = json.loads(line)
    (first, last), (begin, end) = [(clock[key][0], clock[key][-1]) for key in ("steps", "times")]
    return Measurement(
        1e3 * (end - begin) / (last - first),
        1e3 * done.cpu_between(begin, end) / (last - first),
        sum(done.peaks.values()),
        clock["costs"][-1],
    )


def rows(found: dict[str, list[Measurement]]) -> list[list[str]]:
    """Returns the cells of the table, a row for each program."""
    base = next(iter(found.values()))
    cells = []
    for name, measured in found.items():
        ratios = [a.wall / b.wall for a, b in zip(base, measured)]
        spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        ratio = median(a.cpu / b.cpu for a, b in zip(base, measured))
        wall, cpu = median(m.wall for m in measured), median(m.cpu for m in measured)
        peak = median(m.peak for m in measured)
        cells.append([name, f"{wall:.2f}", spread, f"{cpu:.2f}", f"{ratio:.2f}", f"{peak:.0f}"])
    return cells


def main() -> int:
    """Measures, and prints the tables; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program")
    parser.add_argument("--updates", type=int, default=4000, help="of each run; 200 or more")
    parser.add_argument("--workers", default="1,2", help="how many, for a table each")
    parser.add_argument("--only", default="", help="those with this text in their name, too")
    parser.add_argument("--dataset", default="mnist", help="as in experiments.mnist")
    parser.add_argument("--pytorch", default="", help="a Python that has PyTorch")
    parser.add_argument("--write", action="store_true", help="put it in docs/benchmarks.md")
    flags = parser.parse_args()
    if flags.updates < 200 or flags.updates % 100 or flags.rounds < 1:
        parser.error("--updates must be a multiple of 100 from 200 on, --rounds 1 or more")
    release = metadata.version("tensorflow")
    text = [f"TensorFlow {release}, {os.cpu_count()} cores, {platform.machine()}:"]
    for workers in map(int, flags.workers.split(",")):
        first, *others = ways(flags.pytorch)
        chosen = [first, *[way for way in others if flags.only in way.name]]
        found: dict[str, list[Measurement]] = {way.name: [] for way in chosen}
        for number in range(flags.rounds):
            for way in chosen:
                made = measure(way, workers, flags.updates, flags.dataset)
                found[way.name].append(made)
                print(f"{number + 1}, {workers}: {way.name}: {made}", file=sys.stderr, flush=True)
        header = ["1 worker" if workers == 1 else f"{workers} workers", *table.COLUMNS]
        text += ["", table.markdown(rows(found), header)]
    if not flags.pytorch:
        text += ["", "PyTorch: not measured, without --pytorch=PYTHON."]
    print("\n".join(text))
    if flags.write:
        table.write(trainings.ROOT / "docs" / "benchmarks.md", "\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
