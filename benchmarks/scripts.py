"""What `python -m compat run` costs a script: at its start, and in each `session.run`.

    python -m benchmarks.scripts --rounds=7

The same script runs in turn under `python`, on `tensorflow.compat.v1` as it is, and under
`python -m compat run`. Start-up is the time until TensorFlow has been imported.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs")
    rounds = parser.parse_args().rounds
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
