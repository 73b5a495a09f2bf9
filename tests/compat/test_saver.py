"""A saver with TensorFlow's arguments on either runtime; `tests/upstream` has more on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunProgram


@pytest.fixture(scope="module")
def savers(run_program: RunProgram, programs: Path, runtime: str) -> Any:
    """What savers did, by case, of `programs/savers.py`."""
    return run_program(programs / "savers.py", runtime=runtime)


def test_its_arguments_are_those_of_tensorflow(savers: Any) -> None:
    latest, state, counted, left, is_one = savers["arguments"]
    assert latest == "a-00000003"
    assert state == 'model_checkpoint_path: "a-00000003"'
    assert counted == [0, 1, 1]
    assert left == ["a-00000003", "b", "d"]
    assert is_one == [True, True, True]


def test_the_graph_is_saved(savers: Any) -> None:
    exported, own, imported = savers["graph"]
    assert (exported, imported) == ("none", [1, 2])
    # A supervisor's checkpoint is two files.
    assert own == ["model.ckpt.data-00000-of-00001", "model.ckpt.index"]


def test_a_checkpoint_is_named_by_the_step_in_it(savers: Any) -> None:
    assert savers["updated_while_saving"] == [True, True, True, 2]


def test_a_refusal_is_one_line_with_a_remedy(savers: Any) -> None:
    (reshape, version, session, file, latest, nothing), left = savers["refusals"]
    assert (reshape, version) == ("none", "none")
    assert session == "'sess' must be a Session; None; correct the arguments of save()"
    assert nothing.startswith("No variables to save; make a saver after its variables and ")
    assert file.startswith("checkpoint FOLDER/file/m-3 cannot be written (")
    assert file.endswith(
        "; free or repair the folder, and the same command resumes from the newest"
    )
    assert latest == (
        "'latest_filename' must not contain path components; correct the arguments of save()"
    )
    assert left == ["file"]


def test_what_is_larger_than_a_piece_is_saved_and_restored_by_rows(savers: Any) -> None:
    steps, has_parts, left_alone, refused = savers["in_pieces"]
    assert steps == [0, 1, 2]
    assert has_parts == [True, True, False]
    assert left_alone == [True] * 3
    assert refused == ["variable whole has a value that is not finite; not saved"] * 3


def test_pieces_of_a_sharded_saver_need_no_folder(savers: Any) -> None:
    assert savers["in_pieces_of_each_server"] == [[50, 4], ["new"]]
