"""The model of null steps computes what its formulas say; a small cluster measures some."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
# By path: where tox runs, the folder of the project is not on Python's.
MODEL = runpy.run_path(str(ROOT / "benchmarks" / "null_steps" / "model.py"))
Cell, Cost, Model = MODEL["Cell"], MODEL["Cost"], MODEL["Model"]
cost, is_fitted, shared = MODEL["cost"], MODEL["is_fitted"], MODEL["shared"]


def test_steps_that_nobody_disturbs_take_what_they_take_alone() -> None:
    assert shared(held=2.0, rest=3.0, workers=1) == 5.0
    assert shared(held=0.0, rest=3.0, workers=100) == 3.0


def test_a_second_worker_waits_for_the_part_of_the_time_that_the_first_holds() -> None:
    # Alone, a worker holds the station half of the time: 1 + 1 (1 + 1/2).
    assert shared(held=1.0, rest=1.0, workers=2) == 2.5


def test_many_workers_take_turns_at_the_cores() -> None:
    assert shared(held=2.0, rest=3.0, workers=1000) == pytest.approx(2000, rel=0.01)


@pytest.fixture
def made() -> Any:
    """Costs by the formulas, of 2 cores: 1 ms a step, 0.5 a message, 2 a MB, 3 one of a server."""
    kinds = "scalar", "1 MB", "100 MB"
    cells = [Cell(kind, n, s) for kind in kinds for n in (1, 2, 8) for s in (1, 2, 4)]

    def made_of(cell: Any) -> Any:
        alone = 1 + 0.5 * cell.messages + 2 * cell.megabytes
        worker, servers = 0.2 * alone, 0.1 * alone
        alone += 3 * cell.megabytes / cell.servers
        held = (worker + servers) / 2
        return Cost(shared(held, alone - held, cell.workers), worker, servers)

    return {cell: made_of(cell) for cell in cells}


def test_a_step_moves_tensors_both_ways_and_for_rows_also_their_numbers() -> None:
    assert (Cell("1 MB", 1, 4).messages, Cell("1 MB", 1, 4).megabytes) == (8, 2.0)
    assert (Cell("scalar", 1, 4).messages, Cell("scalar", 1, 4).megabytes) == (8, 32e-6)
    assert (Cell("32 rows", 1, 4).messages, Cell("32 rows", 8, 4).megabytes) == (12, 0.016384)


def test_the_model_finds_the_parameters_and_predicts_what_it_was_not_fitted_to(
    made: Any,
) -> None:
    fitted = {cell: made[cell] for cell in made if is_fitted(cell, made)}
    assert {cell[1:] for cell in fitted} == {(1, 1), (1, 4), (8, 1), (8, 4)}
    others = {cell: Cost(0.1, 0.1, 0.1) for cell in made if cell not in fitted}
    model = Model({**fitted, **others}, cores=2)
    assert model.alone == pytest.approx([1, 0.5, 2, 3])
    assert model.worker == pytest.approx([0.2, 0.1, 0.4])
    for cell in made:
        assert model.predict(cell) == pytest.approx(made[cell])


def test_on_machines_of_their_own_the_busiest_part_is_the_limit(made: Any) -> None:
    model = Model(made, cores=2)
    # A link of 1 MB/ms: the worker's own, or the server's that 100 / 16 workers share.
    assert model.apart(Cell("1 GB", 1, 16), 1000, 1000.0) == pytest.approx(1 + 2000)
    assert model.apart(Cell("1 GB", 100, 16), 1000, 1000.0) == pytest.approx(1 + 2000 * 100 / 16)
    # The worker's cores: 0.2 of 1 ms, of 32 messages and of 2000 MB, on four.
    assert model.apart(Cell("1 GB", 1, 16), 4, 1e9) == pytest.approx(1 + 0.2 * 4017 / 4)
    # The cores of a server, which serves 100 / 16 workers for a part of 1 / 16.
    assert model.apart(Cell("1 GB", 100, 16), 4, 1e9) == pytest.approx(1 + 0.1 * 4017 * 6.25 / 4)


def test_the_rate_of_a_round_is_that_of_all_workers_together() -> None:
    # 10 steps in 1 s and 30 in 2 s are 25 a second: 80 ms each, of two workers.
    found = cost([[10, 1.0, 0.5, 0.8], [30, 2.0, 1.5, 0.8]])
    assert found == pytest.approx(Cost(wall=80, worker=50, servers=20))


@pytest.mark.cluster
def test_a_cluster_measures_null_steps(tmp_path: Path, benchmark: Callable[..., Any]) -> None:
    """Some of its workers wait at the barriers while others make steps; all of them end."""
    file = tmp_path / "measured.json"
    small = ("--rows=64", "--rounds=5", "--seconds=0.01", f"--measured={file}")
    kinds = ("--kinds=scalar,32 rows", "--workers=1,3", "--servers=1,2")
    printed = benchmark("benchmarks.null_steps", *small, *kinds)
    assert len(printed.rows) == 8
    found = {Cell(*cell): costs for cell, costs in json.loads(file.read_text(encoding="utf-8"))}
    assert len(found) == 8
    for costs in found.values():
        assert len(costs) == 5
        assert all(spent > 0 for cost in costs for spent in cost)
