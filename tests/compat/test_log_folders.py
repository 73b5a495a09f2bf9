"""A log folder is one chief's at a time, and what people named, edited or left in it stays."""

from __future__ import annotations

import os
import re
import signal
import socket
from typing import TYPE_CHECKING, Any, Iterator

import pytest

from tests.conftest import Process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunProgram


@pytest.fixture(scope="module")
def folders(run_program: RunProgram, programs: Path, runtime: str) -> Any:
    """What supervisors did, by case, of `programs/folders.py`."""
    return run_program(programs / "folders.py", runtime=runtime)


def test_special_characters_in_its_name_are_taken_literally(folders: Any) -> None:
    seen, neighbour_is_intact = folders["special_characters"]
    assert len(seen) == 2
    assert set(map(str, seen.values())) == {"[[0, 2, 4], ['model.ckpt-4', 'model.ckpt-6'], 6]"}
    assert neighbour_is_intact
    assert folders["large_values"] == [True, [[0, 1], [2, 3], [4, 5]]]


@pytest.mark.parametrize("kind", ["supervisor", "monitored"])
def test_the_first_line_of_the_list_counts(folders: Any, kind: str) -> None:
    seen = folders["by_hand"]
    assert seen[f"first_line_alone {kind}"][0] == 4
    assert seen[f"an_earlier_one {kind}"][0] == 2


def test_a_folder_may_be_moved_or_lose_its_newest_checkpoint(folders: Any) -> None:
    assert folders["by_hand"]["moved supervisor"][0] == 4
    assert folders["by_hand"]["missing_but_others supervisor"][0] == 2


@pytest.mark.parametrize(
    ("state", "there"),
    [
        ("missing supervisor", "names model.ckpt-9, which is not there"),
        ("missing monitored", "names model.ckpt-9, which is not there"),
        ("foreign supervisor", "names inception.ckpt-100, which is not there"),
        ("absent supervisor", "names none of them"),
        ("absent monitored", "names none of them"),
    ],
)
def test_checkpoints_that_nothing_names_are_not_passed_over(
    folders: Any, state: str, there: str
) -> None:
    said, new, is_same = folders["by_hand"][state]
    assert said == (
        f"log folder FOLDER holds checkpoints up to model.ckpt-6, and its file `checkpoint` {there}"
        '; write the line model_checkpoint_path: "model.ckpt-6" to that file to resume, or remove '
        "the checkpoints and that file, or choose another log folder to start anew"
    )
    assert set(new) <= {"chief.lock"}
    assert is_same


def test_a_list_of_checkpoints_that_are_gone_is_refused(folders: Any) -> None:
    said, first = folders["its_checkpoints_are_gone"]
    assert said == (
        "the file `checkpoint` in log folder FOLDER names model.ckpt-6, which is not there; put "
        "the files of that checkpoint into the folder to resume, or remove the file `checkpoint`, "
        "or choose another log folder to start anew"
    )
    assert first == 0


def test_a_url_is_not_taken_for_a_local_folder(folders: Any) -> None:
    if folders["a_url"] is None:
        pytest.skip("this TensorFlow has no file system in memory")
    assert folders["a_url"] == [[0, 2, 4], "model.ckpt-6", []]


def test_only_what_a_dead_chief_was_writing_is_removed(folders: Any) -> None:
    removed, left = folders["left_by_a_killed_chief"]
    assert removed == [".unfinished-0123456789abcdef-3"]
    assert left == ["model.ckpt-0", "model.ckpt-1"]


def test_the_lock_leaves_nothing_and_is_no_link(folders: Any) -> None:
    assert folders["the_lock_leaves_nothing"] == [True, False]
    said, target = folders["the_lock_is_a_link"]
    assert said == (
        "FOLDER/chief.lock is a link, which no run makes; remove it, or choose another log folder"
    )
    assert target == "mine"


@pytest.fixture(params=["supervisor", "monitored"])
def chiefs(
    request: pytest.FixtureRequest, programs: Path, runtime: str, tmp_path: Path
) -> Iterator[Any]:
    """Starts chiefs of one folder, `tmp_path / "log"`, and ends what still runs."""
    started: list[Process] = []

    def start(holds: bool) -> Process:
        settings = {"runtime": runtime, "kind": request.param, "logdir": str(tmp_path / "log")}
        place = tmp_path / str(len(started))
        started.append(Process(programs / "holding.py", {**settings, "holds": holds}, place, {}))
        return started[-1]

    yield start
    for process in started:
        process.send(signal.SIGKILL)


def test_a_second_chief_is_refused(chiefs: Any, tmp_path: Path) -> None:
    """The first is not disturbed; once it is killed, the next one has the folder."""
    logdir = tmp_path / "log"
    first = chiefs(True)
    first.wait_until_it_says("holding")
    (being_written,) = logdir.glob(".unfinished-*")
    (logdir / "dataset-2016_parts").mkdir()
    second = chiefs(False).wait()
    assert second.code == 2
    assert re.fullmatch(
        rf"error: log folder {logdir} is in use by process {first.pid} on "
        rf"{re.escape(socket.gethostname())}, since [-0-9]+ [:0-9]+ [-+]\d+; wait until that run "
        "has ended, end it, or choose another log folder",
        second.complaints.splitlines()[-1],
    ), second.complaints
    assert sorted(os.listdir(str(being_written))) == [
        "model.ckpt-9.data-00000-of-00001",
        "model.ckpt-9.index",
    ]
    first.send(signal.SIGKILL)
    assert first.wait().code == -signal.SIGKILL
    last = chiefs(False)
    assert last.report
    assert not being_written.exists()
    assert (logdir / "dataset-2016_parts").exists()
    assert not (logdir / "chief.lock").exists()


EXITS = """
from compat.checkpoint.folder_lock import FolderLock
from compat.errors import UserError
from compat.processes.exit_codes import exit_at_once

used, empty = FolderLock("used"), FolderLock("made/empty")
open("used/kept", "w").close()
exit_at_once(UserError("no more"))
"""


def test_who_exits_at_once_leaves_no_empty_folder(tmp_path: Path) -> None:
    """As a task with a call into TensorFlow that has not returned, such as on a busy machine."""
    program, folder = tmp_path / "exits.py", tmp_path / "folder"
    program.write_text(EXITS)
    exited = Process(program, {}, folder, {}).wait()
    assert (exited.code, exited.complaints) == (2, "error: no more\n")
    assert sorted(os.listdir(str(folder))) == ["stderr", "stdout", "used"]
    assert os.listdir(str(folder / "used")) == ["kept"]


@pytest.mark.slow
def test_the_first_chief_goes_on(chiefs: Any, tmp_path: Path) -> None:
    first = chiefs(True)
    first.wait_until_it_says("holding")
    assert chiefs(False).wait().code == 2
    (tmp_path / "log" / "go").touch()
    assert first.report
