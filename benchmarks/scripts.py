"""What `python -m compat run` costs a script, and what `--ahead` and `--runtime` make of a loop.

    python -m benchmarks.scripts --rounds=7
    python -m benchmarks.scripts --rounds=3 --example=example.py --data_dir=MNIST_data

The same script runs in turn under `python`, on `tensorflow.compat.v1` as it is, and under
`python -m compat run`. Start-up is the time until TensorFlow has been imported.

With `--example` it is the example of 2016, as it was but for its number of workers and epochs: as a
server and one worker, and two, on each runtime, with `--ahead=20` and without. Its own clock gives
the time of an update, which is the median of all lines that it prints.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import table, trainings

CALLS = 3000
SCRIPT = """
import json, time
import {module} as tf
imported = time.time()
getattr(tf, "disable_v2_behavior", lambda: None)()
one = tf.constant(1.0) + tf.Variable(1.0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(100):
        session.run(one)
    began = time.perf_counter()
    for _ in range({calls}):
        session.run(one)
    print(json.dumps([imported, time.perf_counter() - began]))
"""


def measure(module: str, command: list[str], folder: str) -> tuple[float, float]:
    """Runs the script once.

    Returns:
      Milliseconds from the start of the process to the end of the import, and microseconds of one
      call of `session.run`.
    """
    script = Path(folder) / "script.py"
    script.write_text(SCRIPT.format(module=module, calls=CALLS), encoding="utf-8")
    began = time.time()
    done = subprocess.run(
        [sys.executable, *command, str(script)],
        cwd=str(trainings.ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    imported, calls = json.loads(done.stdout.decode().splitlines()[-1])
    return 1e3 * (imported - began), 1e6 * calls / CALLS


def with_workers(text: str, workers: int, epochs: int) -> str:
    """Returns the example with a cluster of so many workers, and so many epochs.

    Raises:
      ValueError: the text has no such list of workers, or no number of epochs.
    """
    hosts = [f"pc-{2 + i:02d}:2222" for i in range(workers)]
    text, lists = re.subn(r"(?m)^workers = \[[^]]*\]", f"workers = {hosts}", text)
    text, numbers = re.subn(r"(?m)^training_epochs = \d+", f"training_epochs = {epochs}", text)
    if (lists, numbers) != (1, 1):
        raise ValueError("expected the example of 2016, with `workers = [...]` and its epochs")
    return text


def update_ms(script: Path, workers: int, options: list[str]) -> float:
    """Runs the example as a cluster; returns the milliseconds of an update of a worker."""
    command = [sys.executable, "-m", "compat", "run", f"--cluster=ps=1,worker={workers}"]
    done = subprocess.run(
        [*command, *options, str(script)],
        cwd=str(trainings.ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=900,
    )
    return median(map(float, re.findall(r"AvgTime: ([\d.]+)ms", done.stdout.decode())))


def compare(example: Path, data_dir: str, epochs: int, rounds: int) -> list[list[str]]:
    """Returns the rows of the example: with `--ahead=20` against without, and the runtimes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "example.py"
        for workers in (1, 2):
            script.write_text(with_workers(example.read_text(), workers, epochs))
            found: dict[tuple[str, int], list[float]] = {}
            for _ in range(rounds):
                for runtime in ("legacy", "modern"):
                    for ahead in (0, 20):
                        options = [f"--runtime={runtime}", f"--data_dir={data_dir}"]
                        options += [f"--ahead={ahead}"] if ahead else []
                        # In microseconds, which the table shows without a fraction.
                        took = 1e3 * update_ms(script, workers, options)
                        found.setdefault((runtime, ahead), []).append(took)
            for runtime in ("legacy", "modern"):
                pairs = list(zip(found[runtime, 20], found[runtime, 0]))
                rows.append(table.row(runtime, f"--ahead=20, {workers} worker(s), us", pairs))
            pairs = list(zip(found["modern", 0], found["legacy", 0]))
            rows.append(table.row("modern", f"legacy as twin, {workers} worker(s), us", pairs))
    return rows


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs")
    parser.add_argument("--example", type=Path, help="the example of 2016")
    parser.add_argument("--data_dir", default="MNIST_data", help="folder of MNIST")
    parser.add_argument("--epochs", type=int, default=6, help="of the example")
    options = parser.parse_args()
    rounds = options.rounds
    if options.example:
        data_dir = str(Path(options.data_dir).resolve())
        print(table.markdown(compare(options.example, data_dir, options.epochs, rounds)))
        return 0
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            ours = measure("tensorflow", ["-m", "compat", "run"], folder)
            plain = measure("tensorflow.compat.v1", [], folder)
            pairs.append((ours, plain))
    rows = [
        table.row("compat run", "start-up, ms", [(a[0], b[0]) for a, b in pairs]),
        table.row("compat run", "session.run, us", [(a[1], b[1]) for a, b in pairs]),
    ]
    print(table.markdown(rows))
    added = sorted(a[0] - b[0] for a, b in pairs)[rounds // 2]
    print(f"added to the start: {added:.0f} ms (median of {rounds} pairs)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
