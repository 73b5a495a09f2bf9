"""Where operations run: what a step tells of itself, beside what TensorFlow did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram


@pytest.fixture(scope="module")
def placement(run_program: RunProgram) -> Any:
    return run_program(Path(__file__).parent / "programs" / "device_placement.py")


def test_operations_run_where_the_step_says(placement: Any) -> None:
    told, ran = placement["told"], placement["ran"]
    assert {name: told[name] for name in ran} == ran
    assert set(ran.values()) == {"/job:ps/task:0", "/job:worker/task:0"}


def test_most_operations_are_seen_to_run(placement: Any) -> None:
    """What is not, TensorFlow has computed when it optimized the graph."""
    assert len(placement["ran"]) > 0.6 * len(placement["told"])


def test_variables_are_updated_where_they_are(placement: Any) -> None:
    updates = {name for name in placement["ran"] if name.endswith("ResourceApplyAdam")}
    assert {placement["ran"][name] for name in updates} == {"/job:ps/task:0"}
    assert len(updates) == 4


def test_an_update_in_a_call_of_several_is_few_messages(placement: Any) -> None:
    """The matrix of 313 KB has a message of its own; the gradients are one vector."""
    assert placement["sent"] == {"/job:ps/task:0": 2 * 5 + 1, "/job:worker/task:0": 5}
