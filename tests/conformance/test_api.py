"""The old API, name by name: its numbers are TensorFlow 1.15's, on either runtime, anywhere.

`golden_rows.json` is what `rows.py` prints on TensorFlow 1.15.5.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster

HERE = Path(__file__).parent
PROGRAM = HERE / "row_program.py"
GOLDEN: dict[str, list[float]] = json.loads((HERE / "golden_rows.json").read_text("utf-8"))
# What the workers of a runtime do not support, and how it says so; a row that passes has to leave.
MISSING = {
    ("tf.py_func", "modern"): "UserError: the step calls Python (tf.py_func, tf.py_function or "
}

Found = Dict[str, Any]


@pytest.fixture(scope="module")
def in_one_process(run_program: RunProgram, runtime: str) -> Found:
    found: Found = run_program(PROGRAM, runtime=runtime)
    return found


@pytest.fixture(scope="module")
def in_a_cluster(start_cluster: StartCluster, runtime: str) -> Found:
    with start_cluster(PROGRAM, runtime, ps=2, worker=1) as cluster:
        servers, worker = [cluster.start("ps", index) for index in (0, 1)], cluster.start("worker")
        found: Found = worker.report
        assert [server.wait(30).code for server in servers] == [0, 0]
    return found


@pytest.mark.parametrize("name", GOLDEN)
def test_numbers_in_one_process(in_one_process: Found, name: str) -> None:
    assert in_one_process[name] == pytest.approx(GOLDEN[name], rel=1e-5)


@pytest.mark.cluster
@pytest.mark.parametrize("name", GOLDEN)
def test_numbers_in_a_cluster(in_a_cluster: Found, name: str, runtime: str) -> None:
    if (name, runtime) in MISSING:
        assert in_a_cluster[name].startswith(MISSING[name, runtime])
    else:
        assert in_a_cluster[name] == pytest.approx(GOLDEN[name], rel=1e-5)


def test_the_page_lists_each_name() -> None:
    page = (HERE.parents[1] / "docs" / "api.md").read_text("utf-8")
    rows = runpy.run_path(str(HERE / "rows.py"))["SECTIONS"]
    lines = []
    for section, names in rows.items():
        lines += ["", f"## {section}", "", "| name | legacy | modern |", "|---|---|---|"]
        for name in names:
            legacy, modern = ("in one process" if (name, runtime) in MISSING else "yes"
                              for runtime in ("legacy", "modern"))  # fmt: skip
            lines.append(f"| `{name}` | {legacy} | {modern} |")
    assert "\n".join(lines) in page


def test_each_row_has_numbers_of_its_time() -> None:
    assert list(GOLDEN) == list(runpy.run_path(str(HERE / "rows.py"))["ROWS"])
