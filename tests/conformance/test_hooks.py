"""Sessions with hooks, name by name: on either runtime they do what those of 1.15 do.

`golden_hooks.json` is what `hook_rows.py` prints on TensorFlow 1.15.5.
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
PROGRAM = HERE / "hook_program.py"
GOLDEN: dict[str, list[float]] = json.loads((HERE / "golden_hooks.json").read_text("utf-8"))

Found = Dict[str, Any]


@pytest.fixture(scope="module")
def in_one_process(run_program: RunProgram, runtime: str) -> Found:
    found: Found = run_program(PROGRAM, runtime=runtime)
    return found


@pytest.fixture(scope="module")
def in_a_cluster(start_cluster: StartCluster, runtime: str) -> Found:
    with start_cluster(PROGRAM, runtime, ps=1, worker=1) as cluster:
        server, worker = cluster.start("ps"), cluster.start("worker")
        found: Found = worker.report
        assert server.wait(30).code == 0
    return found


@pytest.mark.parametrize("name", GOLDEN)
def test_numbers_in_one_process(in_one_process: Found, name: str) -> None:
    assert in_one_process[name] == pytest.approx(GOLDEN[name], rel=1e-5)


@pytest.mark.cluster
@pytest.mark.parametrize("name", GOLDEN)
def test_numbers_in_a_cluster(in_a_cluster: Found, name: str) -> None:
    assert in_a_cluster[name] == pytest.approx(GOLDEN[name], rel=1e-5)


def test_the_page_lists_each_name() -> None:
    page = (HERE.parents[1] / "docs" / "api.md").read_text("utf-8")
    sections = runpy.run_path(str(HERE / "hook_rows.py"))["SECTIONS"]
    lines = []
    for section, names in sections.items():
        lines += ["", f"## {section}", "", "| name | legacy | modern |", "|---|---|---|"]
        lines += [f"| `{name}` | yes | yes |" for name in names]
    assert "\n".join(lines) in page
    assert [name for names in sections.values() for name in names] == list(GOLDEN)
