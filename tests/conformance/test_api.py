"""The old API, name by name: its numbers are TensorFlow 1.15's, on either runtime, anywhere.

The golden files are what the modules of the rows print on TensorFlow 1.15.5.
"""

from __future__ import annotations

import functools
import json
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
# The module that runs the rows of each table.
MODULES = {
    "rows": "rows",
    "layer_rows": "rows",
    "hook_rows": "hook_rows",
    "supervisor_rows": "supervisor_rows",
}
PAGE = runpy.run_path(str(HERE / "__main__.py"))
TABLES = {table: runpy.run_path(str(HERE / f"{table}.py")) for table in MODULES}
GOLDEN: dict[str, dict[str, list[float]]] = {
    table: json.loads((HERE / f"golden_{table}.json").read_text("utf-8")) for table in TABLES
}
ROWS = [(table, name) for table, rows in GOLDEN.items() for name in rows]
IN_A_CLUSTER = [
    # On the legacy runtime of every release, test_pairs.py has a supervisor in a cluster.
    pytest.param(*row, marks=pytest.mark.endings if row[0] == "supervisor_rows" else ())
    for row in ROWS
    if row[1] not in TABLES[row[0]].get("ALONE", ())
]

Found = Callable[[str], Dict[str, Any]]  # What a module of rows saw.


@pytest.fixture(scope="module")
def in_one_process(run_program: RunProgram, runtime: str) -> Found:
    return functools.lru_cache()(lambda rows: run_program(PROGRAM, runtime=runtime, rows=rows))


@pytest.fixture(scope="module")
def in_a_cluster(start_cluster: StartCluster, runtime: str) -> Found:
    @functools.lru_cache()
    def run(rows: str) -> dict[str, Any]:
        with start_cluster(PROGRAM, runtime, ps=2, worker=1) as cluster:
            servers = [cluster.start("ps", index) for index in (0, 1)]
            found: dict[str, Any] = cluster.start("worker", rows=rows).report
            assert [server.wait().code for server in servers] == [0, 0]
        return found

    return run


@pytest.mark.parametrize(("table", "name"), ROWS)
def test_numbers_in_one_process(in_one_process: Found, table: str, name: str) -> None:
    assert in_one_process(MODULES[table])[name] == pytest.approx(GOLDEN[table][name], rel=1e-5)


@pytest.mark.cluster
@pytest.mark.parametrize(("table", "name"), IN_A_CLUSTER)
def test_numbers_in_a_cluster(in_a_cluster: Found, table: str, name: str) -> None:
    assert in_a_cluster(MODULES[table])[name] == pytest.approx(GOLDEN[table][name], rel=1e-5)


@pytest.mark.once
def test_the_page_s_program_prints_what_the_page_shows(
    run_source: RunProgram, runtime: str, tmp_path: Path
) -> None:
    page = (HERE.parents[1] / "docs" / "api.md").read_text("utf-8")
    program, output = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    assert run_source(program, runtime, folder=tmp_path) == output


@pytest.mark.parametrize("page", PAGE["PAGES"], ids=lambda page: str(page.name))
def test_the_page_is_written_from_the_rows(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == PAGE["written"](text), "python -m tests.conformance writes it"


@pytest.mark.parametrize("table", TABLES)
def test_each_row_has_numbers_of_its_time(table: str) -> None:
    names = [name for names in TABLES[table]["SECTIONS"].values() for name in names]
    assert list(GOLDEN[table]) == names
