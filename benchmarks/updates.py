"""Updates per second and memory of `experiments.mnist` beside hand-written twins.

    python -m benchmarks.updates --rounds=3 --updates=11000 --workers=1 --runtimes=legacy,modern

Ours is the real command, with lines, curves, tracking and checkpoints as they are by default; the
twins do nothing but train. Both run in turn, in one go: machines differ and are shared, so only
the ratios of neighbouring runs say something.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import local_cluster, table
from compat.tracking.tensorboard.eventfile import event_files, read_events

_MOST_WARM_UP = 500  # Updates before the clock starts: tracing, first connections.


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    runtime: str
    workers: int
    updates: int
    dataset: str

    @property
    def warm_up(self) -> int:
        """Updates before the clock starts; a multiple of 100, as points of the curves are."""
        return min(_MOST_WARM_UP, self.updates // 200 * 100)


@dataclass(frozen=True)
class Measurement:
    """One training.

    Attributes:
      updates_per_sec: from the end of the warm-up to the last update.
      peaks: the largest resident set, in MiB, by task.
      costs: at the end of the warm-up and at the last update, in nats per example.
    """

    updates_per_sec: float
    peaks: dict[str, float]
    costs: tuple[float, float]


def ours(setting: Setting) -> Measurement:
    """Measures `experiments.mnist`, by the times of the points that it writes anyhow."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            f"--runtime={setting.runtime}",
            f"--max_steps={setting.updates}",
            f"--dataset={setting.dataset}",
            f"--logdir={folder}/run",
        ]
        done = local_cluster.train("experiments.mnist", argv, setting.workers, Path(folder))
        points = [
            (event.step, event.wall_time, value.simple_value)
            for path in event_files(f"{folder}/run")
            for _, event in read_events(path)
            for value in event.summary.value
            if value.tag == "train/cost" and event.step >= setting.warm_up
        ]
    return _measurement([points[0], points[-1]], done.peaks)


def twin(setting: Setting) -> Measurement:
    """Measures the hand-written program for the runtime."""
    argv = [
        f"--max_steps={setting.updates}",
        f"--warm_up={setting.warm_up}",
        f"--dataset={setting.dataset}",
    ]
    endless = ["ps 0"]
    if setting.runtime == "modern":
        endless += [f"worker {index}" for index in range(1, setting.workers)]
    with tempfile.TemporaryDirectory() as folder:
        done = local_cluster.train(
            f"benchmarks.twin_{setting.runtime}", argv, setting.workers, Path(folder), endless
        )
    clock = json.loads(done.output.splitlines()[-1])
    points = list(zip(clock["steps"], clock["times"], clock["costs"]))
    return _measurement(points, done.peaks)


def _measurement(points: list[tuple[int, float, float]], peaks: dict[str, float]) -> Measurement:
    (first_step, first_time, first_cost), (last_step, last_time, last_cost) = points
    rate = (last_step - first_step) / (last_time - first_time)
    return Measurement(rate, peaks, (first_cost, last_cost))


def measure(setting: Setting, rounds: int) -> list[tuple[Measurement, Measurement]]:
    """Measures ours and the twin in turn; says each pair on standard error."""
    pairs = []
    for number in range(rounds):
        pair = ours(setting), twin(setting)
        pairs.append(pair)
        print(
            f"{setting.runtime}, round {number + 1} of {rounds}: updates/s "
            + ", ".join(
                f"{name} {m.updates_per_sec:.0f} (cost {m.costs[0]:.2f} to {m.costs[1]:.2f})"
                for name, m in zip(("ours", "twin"), pair)
            ),
            file=sys.stderr,
            flush=True,
        )
    return pairs


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="pairs of trainings")
    parser.add_argument("--updates", type=int, default=11000, help="of each training; 200 or more")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runtimes", default="legacy,modern")
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    parser.add_argument("--write", action="store_true", help="put the table in docs/benchmarks.md")
    flags = parser.parse_args()
    if flags.updates < 200 or flags.updates % 100 or flags.rounds < 1 or flags.workers < 1:
        parser.error("--updates must be a multiple of 100 from 200 on, the others 1 or more")
    rows = []
    for runtime in flags.runtimes.split(","):
        setting = Setting(runtime, flags.workers, flags.updates, flags.dataset)
        pairs = measure(setting, flags.rounds)
        rates = [(a.updates_per_sec, b.updates_per_sec) for a, b in pairs]
        rows.append(table.row(runtime, "updates/s", rates))
        for name in sorted(pairs[0][0].peaks):
            peaks = [(a.peaks[name], b.peaks[name]) for a, b in pairs]
            rows.append(table.row(runtime, f"peak memory of {name}, MiB", peaks))
    text = table.markdown(rows)
    print(text)
    if flags.write:
        table.write(local_cluster.ROOT / "docs" / "benchmarks.md", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
