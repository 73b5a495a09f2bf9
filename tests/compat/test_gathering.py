"""Calls of session.run that are gathered give what as many calls give, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram


@pytest.fixture(scope="module")
def gathered(run_program: RunProgram, programs: Path, runtime: str) -> Any:
    """What loops gave, by case, of `programs/gathering.py`."""
    return run_program(programs / "gathering.py", runtime=runtime)


@pytest.mark.parametrize(
    ("case", "groups"),
    [
        ("reference_variables", 7),
        ("resource_variables", 7),
        ("a_batch_that_is_written_over", 4),
        ("a_smaller_last_batch", 4),
        ("another_rate_and_evaluations_between", 10),
        ("a_branch_and_dropout_without_numbers", 4),
        ("seeded_dropout", 4),
        ("input_of_a_queue", None),
        ("input_of_an_iterator", 3),
        ("another_thread_reads", 6),
        ("two_losses_in_turn", None),
        ("a_state_that_is_fed_back", None),
    ],
)
def test_a_loop_gives_the_same(gathered: Any, case: str, groups: int | None) -> None:
    found = gathered[case]
    assert found["same"], found["values"]
    if groups is not None:
        assert f" in {groups} groups" in found["said"]


def test_a_line_says_what_is_looked_at(gathered: Any) -> None:
    assert "gathering.py:" in gathered["two_losses_in_turn"]["said"]
    assert " runs Mean:0, Momentum" in gathered["two_losses_in_turn"]["said"]
    said = gathered["a_state_that_is_fed_back"]["said"]
    assert " looks at add:0" in said


@pytest.mark.parametrize(
    "use",
    [
        *("array", "float32", "text", "format", "repr", "json", "comparison", "in", "index"),
        *("round", "simple_value", "feed"),
    ],
)
def test_a_value_is_used_as_any(gathered: Any, use: str) -> None:
    assert gathered["use"][use] is True


def test_a_value_becomes_one_of_numpy(gathered: Any) -> None:
    used = gathered["use"]
    assert (used["pickle"], used["copy"], used["arithmetic"]) == ("ndarray", "ndarray", "float32")
    assert used["asarray"] == used["shape"] == [3, 4]


def test_calls_before_one_that_fails_are_made_and_those_behind_it_are_not(gathered: Any) -> None:
    assert gathered["failure"] == {
        "error": "call 3 of 4 that were gathered has failed, 1 behind it are not made",
        "names": True,
        "goes on": 3.0,
        "in the end": 4.0,
    }


def test_no_call_behind_one_that_fails_in_a_full_group_is_made(gathered: Any) -> None:
    assert gathered["failure of a full group"] == {"says": True, "total": 3}


def test_an_interruption_drops_what_was_not_made(gathered: Any) -> None:
    assert gathered["interruption"]["said"] == ("compat: 3 calls that were gathered are not made\n")


def test_a_writer_is_handed_summaries_without_a_look(gathered: Any) -> None:
    assert gathered["summaries"] == {
        "same": True,
        "said": "compat: --ahead=5: 13 of 13 calls were made in 4 groups\n",
    }


def test_calls_are_made_before_other_programs_are_told(gathered: Any) -> None:
    assert gathered["signal"] == {"made": [False, True]}


def test_calls_are_made_after_a_second(gathered: Any) -> None:
    assert gathered["waiting"] == {"made": True}
