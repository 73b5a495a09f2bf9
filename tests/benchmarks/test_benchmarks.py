"""The benchmarks measure, on a few updates; what they measure is not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
def test_updates_are_measured_beside_the_twin(runtime: str) -> None:
    small = ("--rounds=1", "--updates=200", "--dataset=digits", f"--runtimes={runtime}")
    rows = table("benchmarks.updates", *small)
    assert [row[:2] for row in rows] == [
        [runtime, "updates/s"],
        [runtime, "peak memory of ps 0, MiB"],
        [runtime, "peak memory of worker 0, MiB"],
    ]
    for row in rows:
        assert all(float(cell) > 0 for cell in row[2:])


def test_what_running_a_script_costs_is_measured() -> None:
    rows = table("benchmarks.scripts", "--rounds=1")
    assert [row[1] for row in rows] == ["start-up, ms", "session.run, us"]
    for row in rows:
        assert all(float(cell) > 0 for cell in row[2:])
