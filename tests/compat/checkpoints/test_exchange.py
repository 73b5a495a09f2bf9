"""Checkpoints go from the oldest TensorFlow to the newest and back, on both runtimes.

`golden/` holds a folder for each who wrote one; `exchange.py` made them and goes on from them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = pytest.mark.feature("checkpoint exchange")
HERE = Path(__file__).parent
GOLDEN = sorted(path.name for path in (HERE / "golden").glob("tf*"))
HALF, WHOLE = 20, 40
TOLERANCE = 1e-5  # float32, costs below 2.


def of_one_go(name: str) -> list[float]:
    """Returns the golden costs of forty updates."""
    costs: list[float] = json.loads((HERE / "golden" / name / "costs.json").read_text("utf-8"))
    return costs


@pytest.fixture(scope="module")
def resumed(
    run_program: RunProgram, runtime: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the trainings report that go on from the golden checkpoints, by name."""
    folder = tmp_path_factory.mktemp("resumed")
    for name in GOLDEN:
        shutil.copytree(str(HERE / "golden" / name), str(folder / name))
    told = [{"logdir": str(folder / name), "until": WHOLE} for name in GOLDEN]
    reports = run_program(HERE / "exchange.py", runtime=runtime, trainings=told)
    return dict(zip(GOLDEN, reports))


def test_both_ends_and_both_runtimes_wrote_one() -> None:
    assert GOLDEN == ["tf1.15.5-legacy", "tf2.21.0-legacy", "tf2.21.0-modern"]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_training_goes_on_where_another_release_left_it(
    resumed: dict[str, Any], name: str
) -> None:
    expected = of_one_go(name)
    assert len(expected) == WHOLE
    assert resumed[name]["first"] == HALF
    np.testing.assert_allclose(resumed[name]["costs"], expected[HALF:], rtol=0, atol=TOLERANCE)
