"""Checkpoints go from the oldest TensorFlow to the newest and back, on both runtimes.

`golden/` holds a folder for each who wrote one; `exchange.py` made them and goes on from them.
"""

from __future__ import annotations

import json
import re
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
def exchanged(
    run_program: RunProgram, runtime: str, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """What one process does: it goes on from each golden checkpoint, and makes one afresh.

    Returns:
      Its `folder`, what the `trainings` report that go on, and what lies in each checkpoint of
      `HALF` the updates that was `read`; both by name, "afresh" for the one that it has made.
    """
    folder = tmp_path_factory.mktemp("exchanged")
    for name in GOLDEN:
        shutil.copytree(str(HERE / "golden" / name), str(folder / name))
    told = [{"logdir": str(folder / name), "until": WHOLE} for name in GOLDEN]
    told.append({"logdir": str(folder / "afresh"), "until": HALF})
    names = [*GOLDEN, "afresh"]
    logdirs = [*(HERE / "golden" / name for name in GOLDEN), folder / "afresh"]
    prefixes = [str(logdir / f"model.ckpt-{HALF}") for logdir in logdirs]
    report = run_program(HERE / "exchange.py", runtime=runtime, trainings=told, read=prefixes)
    return {"folder": folder, **{key: dict(zip(names, report[key])) for key in report}}


def test_both_ends_and_both_runtimes_wrote_one() -> None:
    assert GOLDEN == ["tf1.15.5-legacy", "tf2.21.0-legacy", "tf2.21.0-modern"]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_training_goes_on_where_another_release_left_it(exchanged: Any, name: str) -> None:
    expected, resumed = of_one_go(name), exchanged["trainings"][name]
    assert len(expected) == WHOLE
    assert resumed["first"] == HALF
    np.testing.assert_allclose(resumed["costs"], expected[HALF:], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_written_today_is_what_the_golden_ones_hold(exchanged: Any, name: str) -> None:
    """On the release that wrote the golden one, and on all others: files, names, types, values."""
    kept = {path.name for path in (HERE / "golden" / name).iterdir()} - {"costs.json"}
    written = {path.name for path in (exchanged["folder"] / "afresh").iterdir()}
    # A supervisor also writes a checkpoint when the run begins, and the graph.
    others = {name for name in written - kept if not re.match("model.ckpt-0|events|graph", name)}
    assert kept <= written
    assert others == set()
    expected, found = exchanged["read"][name], exchanged["read"]["afresh"]
    assert set(found) == set(expected)
    for variable, (dtype, value) in expected.items():
        assert found[variable][0] == dtype, variable
        np.testing.assert_allclose(
            found[variable][1], value, rtol=0, atol=TOLERANCE, err_msg=variable
        )
