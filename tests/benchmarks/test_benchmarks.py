"""The benchmarks measure, on a few updates; what they measure is not judged here."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from tests.benchmarks.conftest import ROOT

pytestmark = [pytest.mark.once, pytest.mark.long]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.skipif("MNIST_DATA_DIR" not in os.environ, reason="the example of 2016 reads MNIST")
def test_updates_are_measured_beside_the_example_of_2016(
    runtime: str, benchmark: Callable[..., Any]
) -> None:
    program = f"ours, {runtime}, preset 2016, period 20"
    small = ("--rounds=1", "--updates=200", "--dataset=digits", "--workers=1")
    rows = benchmark("benchmarks.updates", *small, f"--only={program}").rows
    assert [row[0] for row in rows] == ["the example of 2016, `compat run`", program]
    for _, wall, speed, cpu, _, peak in rows:
        assert all(float(cell) > 0 for cell in (wall, speed.partition(" ")[0], cpu, peak))


def test_a_command_that_fails_ends_a_start_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not after the minutes that a start may take."""
    # Last, for `compat` to be the copy under test.
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    start: Any = importlib.import_module("benchmarks.start")
    commands = [
        [sys.executable, "-c", f"import sys, time; {code}"]
        for code in ("time.sleep(100)", "sys.exit('what is wrong')")
    ]
    began = time.monotonic()
    with pytest.raises(start.FailedError, match=r"(?s)failed with code 1, .*\nwhat is wrong"):
        start.measured(commands, "trained", str(tmp_path))
    assert time.monotonic() - began < 90


def test_what_running_a_script_costs_is_measured(benchmark: Callable[..., Any]) -> None:
    rows = benchmark("benchmarks.scripts", "--rounds=1").rows
    assert [row[1] for row in rows] == ["start-up, ms", "session.run, us"]
    for row in rows:
        assert all(float(cell) > 0 for cell in row[2:])


@pytest.mark.cluster
@pytest.mark.slow
def test_accuracy_and_speed_over_the_period_are_measured(
    runtime: str, tmp_path: Path, benchmark: Callable[..., Any]
) -> None:
    small = ("--updates=400", "--dataset=digits", f"--runtimes={runtime}", "--periods=5")
    files = (f"--plot={tmp_path / 'plot.png'}", f"--measured={tmp_path / 'measured'}")
    rows = benchmark("benchmarks.periods", *small, *files).rows
    assert benchmark("benchmarks.periods", *small, *files).rows == rows  # Nothing anew.
    names = [("both", "1"), ("downpour", "5"), ("easgd", "5")]
    assert [tuple(row[:3]) for row in rows] == [(runtime, *name) for name in names]
    for _, _, _, accuracy, rate, _ in rows:
        assert 0.5 < float(accuracy) <= 1
        assert float(rate) > 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_cost_of_a_step_is_measured_over_the_rows_of_a_table(
    tmp_path: Path, benchmark: Callable[..., Any]
) -> None:
    small = ("--rows=260,26000", "--width=2", "--rounds=1", "--seconds=0.01")
    plot = tmp_path / "plot.png"
    argv = (*small, "--optimizers=adagrad,adam", f"--plot={plot}")
    rows = benchmark("benchmarks.clicks.rows", *argv).rows
    assert [row[0] for row in rows] == ["260", "26,000"]
    # Of 512 random ids none of 10 rows is left out; of 1000 rows some 400 are read.
    assert rows[0][1] == "260"
    assert 26 * 300 < int(rows[1][1].replace(",", "")) < 26 * 512
    for row in rows:
        assert len(row[2:]) == 2  # An optimizer each.
        assert all(float(cell.partition(" ")[0]) > 0 for cell in row[2:])
    assert plot.read_bytes().startswith(b"\x89PNG")
