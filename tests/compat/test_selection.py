"""`Step.select`: parts of what one function builds, on either runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram


@pytest.fixture(scope="module")
def selected(run_program: RunProgram, programs: Path, runtime: str) -> Any:
    return run_program(programs / "selection.py", runtime=runtime)


def test_a_selected_step_computes_its_values_alone(selected: Any) -> None:
    assert selected["names"] == [
        ["global_step", "loss", "merged", "step"],
        ["global_step"],
        ["global_step", "output"],
        ["all", "global_step"],
    ]
    assert selected["losses"] == [2.5, 104.3125]
    # The prediction updates nothing, and each training call does it once.
    assert selected["steps"] == [2, 3]
    assert selected["output"] == [[-15.0625], [-34.0625]]


def test_a_summary_among_the_values_is_whole(selected: Any) -> None:
    assert selected["summary"]


def test_the_summary_of_a_step_stays_with_what_runs_all_of_it(selected: Any) -> None:
    assert selected["summaries"] == [True, True, False]


def test_a_structure_is_returned_as_one(selected: Any) -> None:
    assert selected["all"] == [[None, {"loss": [779.25390625], "output": [-15.0625, -34.0625]}]] * 4
    assert selected["part"] == 779.25390625


def test_what_cannot_be_selected(selected: Any) -> None:
    assert selected["value"] == (
        "a step has no value 'lost' to select; return it from the step's function, beside output, "
        "loss, train, step, merged, all"
    )
    assert selected["parameter"] == ("a step has no parameter 'z'; choose inputs among x, y, rate")
    assert selected["input"] == ("the values loss of a step need the input 'y'; select it as well")
