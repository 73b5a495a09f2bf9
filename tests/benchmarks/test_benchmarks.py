"""The benchmarks measure, on a few updates; what they measure is not judged here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import start
from benchmarks.local_cluster import FailedError

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


def table(*command: str) -> list[list[str]]:
    """Runs a benchmark; returns the cells of the table that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=str(ROOT),
        capture_output=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.skipif("MNIST_DATA_DIR" not in os.environ, reason="the example of 2016 reads MNIST")
def test_updates_are_measured_beside_the_example_of_2016(runtime: str) -> None:
    program = f"ours, {runtime}, preset 2016, period 20"
    small = ("--rounds=1", "--updates=200", "--dataset=digits", "--workers=1")
    rows = table("benchmarks.updates", *small, f"--only={program}")
    assert [row[0] for row in rows] == ["the example of 2016, `compat run`", program]
    for _, wall, speed, cpu, _, peak in rows:
        assert all(float(cell) > 0 for cell in (wall, speed.partition(" ")[0], cpu, peak))


def test_a_command_that_fails_ends_a_start_at_once(tmp_path: Path) -> None:
    """And not after the minutes that a start may take."""
    commands = [
        [sys.executable, "-c", f"import sys, time; {code}"]
        for code in ("time.sleep(100)", "sys.exit('what is wrong')")
    ]
    began = time.monotonic()
    with pytest.raises(FailedError, match=r"(?s)failed with code 1, .*\nwhat is wrong"):
        start.measured(commands, "trained", str(tmp_path))
    assert time.monotonic() - began < 90


def test_what_running_a_script_costs_is_measured() -> None:
    rows = table("benchmarks.scripts", "--rounds=1")
    assert [row[1] for row in rows] == ["start-up, ms", "session.run, us"]
    for row in rows:
        assert all(float(cell) > 0 for cell in row[2:])
