"""Checkpoints: one format for both runtimes, whole or refused, and no more than asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

OPTIMIZERS = ["adam", "momentum"]
HALF, WHOLE = 20, 40
Costs = Dict[Tuple[str, str, str], List[float]]  # By optimizer and who trained each half.


@pytest.fixture(scope="module")
def costs(
    run_program: RunProgram,
    programs: Path,
    runtimes: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Costs:
    """The costs of forty updates in one go, and of every way to make them in two halves."""
    folder = tmp_path_factory.mktemp("resumed")
    found: Costs = {}

    def run(runtime: str, trainings: list[tuple[tuple[str, str, str], int]]) -> None:
        """Trains on `runtime`, each training in a folder of its own, which it may find begun."""
        told = [
            {"optimizer": key[0], "logdir": str(folder / "-".join(key)), "until": until}
            for key, until in trainings
        ]
        reports = run_program(programs / "resuming.py", runtime=runtime, trainings=told)
        for (key, _), part in zip(trainings, reports):
            found[key] = found.get(key, []) + part

    for number, runtime in enumerate(runtimes):
        begun = [((o, runtime, second), HALF) for o in OPTIMIZERS for second in runtimes]
        whole = [((o, runtime, "in one go"), WHOLE) for o in OPTIMIZERS]
        before = [*runtimes[:number], runtime]
        ended = [((o, first, runtime), WHOLE) for o in OPTIMIZERS for first in before]
        run(runtime, begun + whole + ended)
    # What the later runtime began, the earlier ones end.
    for number, runtime in enumerate(runtimes[:-1]):
        later = runtimes[number + 1 :]
        run(runtime, [((o, first, runtime), WHOLE) for o in OPTIMIZERS for first in later])
    return found


@pytest.mark.once
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_two_halves_make_a_whole_whoever_trains_them(
    costs: Costs, runtimes: list[str], optimizer: str
) -> None:
    whole = costs[optimizer, "legacy", "in one go"]
    assert len(whole) == WHOLE
    assert np.mean(whole[-5:]) < np.mean(whole[:5])
    for first in runtimes:
        for second in [*runtimes, "in one go"]:
            np.testing.assert_allclose(
                costs[optimizer, first, second],
                whole,
                rtol=0,
                atol=1e-5,
                err_msg=f"begun by {first}, ended by {second}",
            )


def test_the_saver_of_tensorflow_reads_ours(kept: Any) -> None:
    assert kept["saver_of_tensorflow_reads_ours"] == [[1, 2], 7]


def test_we_read_that_of_the_saver_of_tensorflow(kept: Any) -> None:
    assert kept["we_read_that_of_tensorflow"] == [3, 7]


@pytest.mark.parametrize("case", ["resumes", "resumes_in_a_moved_folder", "removed"])
def test_a_training_resumes_from_the_newest_checkpoint_there_is(kept: Any, case: str) -> None:
    assert kept[case] == [3, 7]  # The sum of the weights, and the global step.


def test_a_training_without_checkpoints_starts_anew(kept: Any) -> None:
    assert kept["starts_anew"] == [7, 0]


def test_a_training_in_a_copied_folder_leaves_the_original_alone(kept: Any) -> None:
    original, _ = kept["a_copy_leaves_its_original_alone"]
    name = "model.ckpt-7"
    assert original == ["checkpoint", f"{name}.data-00000-of-00001", f"{name}.index"]


def test_a_checkpoint_of_another_model(kept: Any) -> None:
    assert kept["another_model"] == (
        "checkpoint PREFIX is of another model or optimizer: v is missing; w is float32 [2] "
        "instead of float32 [3]; choose another log folder, or the settings it was made with, or "
        "bring it over by python -m compat convert-checkpoint"
    )


def test_a_checkpoint_of_another_dtype(kept: Any) -> None:
    """Such as one of 2016, whose global step is a float."""
    assert (
        "optimizer: global_step is float32 [] instead of int64 []; choose" in kept["another_dtype"]
    )


def test_only_the_first_differences_are_named(kept: Any) -> None:
    """Where TensorFlow's saver restores as well, whose error has a hundred lines."""
    assert "a is missing; b is missing; c is missing and 1 more;" in kept["quite_another_model"]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("torn", "Read less bytes than requested"),
        ("changed", ".*Checksum does not match.*"),
        ("without_data", ".*No such file or directory"),
        ("without_index", ".*Failed to find any matching files for .*"),
        ("garbage", r"not an sstable \(bad magic number\)"),
        ("empty_index", "file is too short to be an sstable"),
    ],
)
def test_a_broken_checkpoint_is_refused(kept: Any, case: str, reason: str) -> None:
    """The only one is not passed over: the training would start anew."""
    assert re.fullmatch(
        rf"checkpoint FOLDER/model.ckpt-7 cannot be read \({reason}\); remove its files to do "
        "without it, or choose another log folder",
        kept[case],
    )


def test_the_newest_whole_checkpoint_is_used(kept: Any) -> None:
    values, said, left = kept["torn_newest"]
    assert values == [3, 7]
    assert re.fullmatch(
        r"checkpoint FOLDER/model.ckpt-9 cannot be read \(.*\); trying the one before\n"
        r"checkpoint FOLDER/model.ckpt-8 cannot be read \(.*\); trying the one before\n",
        said,
    )
    assert left == ["model.ckpt-7"]


def test_a_broken_list_of_checkpoints_is_refused(kept: Any) -> None:
    assert kept["garbage_for_a_list"] == (
        "FOLDER/checkpoint does not name the checkpoints of its folder, as it should; choose "
        "another log folder, or remove the file to start anew"
    )


def test_what_is_not_finite_is_not_saved(kept: Any) -> None:
    said, same_files, newest = kept["not_finite"]
    assert said == ["variable w has a value that is not finite; not saved"] * 2
    assert same_files
    assert newest == "model.ckpt-1"


def test_no_more_are_kept_than_asked_for_also_after_a_restart(kept: Any) -> None:
    first, resumed, _ = kept["rotates"]
    assert first == [["model.ckpt-2", "model.ckpt-3"]] * 2
    assert resumed == [["model.ckpt-12", "model.ckpt-13"]] * 2


def test_all_are_kept_if_asked_for(kept: Any) -> None:
    last, listed = kept["rotates"][2]
    assert last == []  # As in TensorFlow: there is none that would be deleted.
    assert listed == ["model.ckpt-21", "model.ckpt-22", "model.ckpt-23"]


def test_a_checkpoint_is_named_by_its_step(kept: Any) -> None:
    assert kept["names"][0] == ["a/b-3", "a/b-4", "a/b-0", "a/b"]


def test_a_saver_saves_its_variables_by_its_names(kept: Any) -> None:
    assert kept["names"][1] == [["w"], ["other"]]


def test_variables_of_a_process_alone_are_saved_wherever_they_are_made(kept: Any) -> None:
    assert kept["made_anywhere"] == [3, ["global_step", "w"]]


def test_a_partitioned_variable_is_restored_into_other_parts(kept: Any) -> None:
    whole, halves, shapes, theirs, ours, alone = kept["partitioned"]
    assert halves == pytest.approx(whole)
    assert len(set(halves)) == 4
    slots = {name: [6, 4] for name in ("table", "table/Adam", "table/Adam_1")}
    assert shapes == {"beta1_power": [], "beta2_power": [], "global_step": [], **slots}
    assert theirs == ours
    assert alone  # A part is restored by a saver of its own.


def test_a_saver_restores_into_an_open_session(kept: Any) -> None:
    values, missing = kept["restores"]
    assert values == [1, 2]
    assert re.match(
        r"checkpoint FOLDER/model.ckpt-8 cannot be read \(|"  # Modern; the other is TensorFlow's.
        r"The passed save_path is not a valid checkpoint: FOLDER/model.ckpt-8; pass the prefix ",
        missing,
    )
