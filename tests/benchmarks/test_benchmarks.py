"""The benchmarks measure, on a few updates; what they measure is not judged here."""

from __future__ import annotations

import os
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.once


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


def test_what_running_a_script_costs_is_measured(benchmark: Callable[..., Any]) -> None:
    rows = benchmark("benchmarks.scripts", "--rounds=1").rows
    assert [row[1] for row in rows] == ["start-up, ms", "session.run, us"]
    for row in rows:
        assert all(float(cell) > 0 for cell in row[2:])
