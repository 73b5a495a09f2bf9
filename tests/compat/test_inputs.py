"""Steps that take the elements of a dataset, and local variables: `programs/inputs.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunProgram, StartCluster

WHERE = ("alone", "cluster")
SUM = 4 * 10  # Copies in an element, times the array that is stored on each worker.


@pytest.fixture(scope="module", params=WHERE)
def took(
    request: Any, runtime: str, programs: Path, run_program: RunProgram, start_cluster: StartCluster
) -> Any:
    """What the program reports, and the elements of all workers."""
    program = programs / "inputs.py"
    if request.param == "alone":
        return run_program(program, runtime=runtime), [0, 1, 2, 3]
    if runtime == "legacy":
        pytest.skip("each worker has a session and reports of its own")
    with start_cluster(program, runtime, ps=1, worker=2) as cluster:
        cluster.start("ps"), cluster.start("worker", 1)
        return cluster.start("worker").report, [0, 1, 2, 3, *range(100, 106)]


def test_each_element_makes_one_update(took: Any) -> None:
    """Of workers whose data end at different times; twice, for the data begin anew."""
    report, elements = took
    for passes, left in enumerate([report["left 1"], report["left 3"]], 1):
        assert left["global_step"] == passes * len(elements)
        assert left["total"] == passes * SUM * sum(elements)
    assert report["planned"] == 2 * len(elements)


def test_a_local_variable_keeps_its_value_on_its_worker(took: Any) -> None:
    report, elements = took
    size = {x // 100: sum(1 for y in elements if y // 100 == x // 100) for x in elements}
    first, second = report["passes"]
    for values in first:
        assert values["seen"] == values["x"] % 100 + 1
        assert values["mean"] == pytest.approx(values["x"] // 100 * 100 + values["x"] % 100 / 2)
    for values in second:
        assert values["seen"] == values["x"] % 100 + 1 + size[values["x"] // 100]


def test_a_local_variable_is_in_no_checkpoint(took: Any) -> None:
    assert took[0]["variables"] == ["global_step", "stray", "total"]


def test_what_is_no_scalar_is_an_array(took: Any) -> None:
    for values in took[0]["passes"][0]:
        assert values["vector"] == [values["x"], 10]


def test_an_evaluation_takes_all_elements_on_the_coordinator(took: Any) -> None:
    assert took[0]["measured"] == [0, 1, 2, 3, "end"] * 2


def test_data_without_end_are_taken_in_order(took: Any) -> None:
    assert set(took[0]["endless"]) <= {0, 1, 2}


def test_each_step_gives_its_own_values(took: Any) -> None:
    found = [[name for name in names if name != "global_step"] for names in took[0]["alternating"]]
    assert found == [["other"]] * 3 + [["endless"]] * 3 + [["other"]] * 3 + [["endless"]] * 3


def test_an_operation_that_no_value_depends_on_does_not_run(took: Any) -> None:
    assert took[0]["stray"] == 0


def test_steps_share_an_iterator_and_draw_other_numbers(took: Any) -> None:
    """Two steps each time; on two workers each has an iterator, and a step may be of either."""
    report, elements = took
    if len(elements) == 4:
        assert [values["taken"] for values in report["draws"]] == [1, 3, 5]
        assert len({values["drawn"] for values in report["draws"]}) == 3
    assert {values["taken"] for values in report["draws"]} <= set(range(6))
