"""Updates of a worker's own, by Downpour and by elastic averaging, against those of NumPy."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

PROGRAM = Path(__file__).with_name("elastic_program.py")
CALLS = 4


def updated(values: Any, x: Any, y: Any, rate: float) -> Any:
    """Returns weights and bias after a step of gradient descent for each batch."""
    for inputs, labels in zip(x, y):
        rows = np.hstack([inputs, np.ones((len(inputs), 1))])
        values = values - rate * 2 * rows.T @ (rows @ values - labels) / len(rows)
    return values


@pytest.mark.once
def test_updates_are_those_of_the_papers(run_program: RunProgram, runtime: str) -> None:
    constants = runpy.run_path(str(PROGRAM))
    period, share, rate = (constants[name] for name in ("PERIOD", "SHARE", "RATE"))
    random = np.random.RandomState(0)
    x, y = random.uniform(-1, 1, (CALLS, period, 4, 2)), random.uniform(-1, 1, (CALLS, period, 4))
    found = run_program(PROGRAM, runtime=runtime, x=x.tolist(), y=y.tolist())
    downpour = center = own = np.array([1.0, -1.0, 0.5])
    for call in range(CALLS):
        downpour = updated(downpour, x[call], y[call], rate)
        np.testing.assert_allclose(found["downpour"][call], downpour, rtol=1e-5)
        change = share * (own - center)
        center, own = center + change, updated(own - change, x[call], y[call], rate)
        np.testing.assert_allclose(found["easgd"][call], center, rtol=1e-5)
