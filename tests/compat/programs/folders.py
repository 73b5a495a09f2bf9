"""Log folders as people name, edit and leave them; prints what supervisors did, by case."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf1
from compat.checkpoint import files, folder_lock
from compat.checkpoint.io import CheckpointIO
from compat.runtime.interface import current_runtime

if TYPE_CHECKING:
    from tests.compat.programs.cases import Program, case, checkpoints, fresh, refusal, run
else:
    from cases import Program, case, checkpoints, fresh, refusal, run

NAMES = ("lr=[1]", r"lr=?*\1")


def trained(folder: Path | str, updates: int, **arguments: Any) -> int:
    """Trains as a program of its own; returns the step that it begins with."""
    fresh()
    program = Program()
    supervisor = compat.Supervisor(logdir=str(folder), saver=compat.Saver(**arguments))
    with supervisor.managed_session() as session:
        first = session.planned_step
        for _ in range(updates):
            session.run(program.train, np.float32(1))
    return int(first)


def monitored(folder: Path | str, last_step: int, every: int = 2) -> int:
    """Does the same by a monitored session, which keeps five checkpoints."""
    fresh()
    program = Program()
    hooks = [tf1.train.StopAtStepHook(last_step=last_step)]
    with compat.MonitoredTrainingSession(
        checkpoint_dir=str(folder), hooks=hooks, save_checkpoint_steps=every
    ) as session:
        first = int(np.asarray(session.run(program.global_step)).item())
        while not session.should_stop():
            session.run(program.train, np.float32(1))
    return first


def intact(folder: Path) -> Path:
    """Makes the folder of a run with checkpoints of steps 0, 2, 4 and 6."""
    for _ in range(3):
        trained(folder, 2)
    assert checkpoints(folder) == [f"model.ckpt-{step}" for step in (0, 2, 4, 6)]
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@case
def special_characters(folder: Path) -> Any:
    """Each run keeps two checkpoints, and a neighbour's names match the pattern of its folder."""
    seen = {}
    neighbour = folder / "lr=1"
    trained(neighbour, 2)
    before = contents(neighbour)
    for name in NAMES:
        logdir = folder / name
        steps = [trained(logdir, 2, max_to_keep=2) for _ in range(3)]
        seen[name] = [steps, checkpoints(logdir), monitored(logdir, 8)]
        values = files.read(CheckpointIO(str(logdir)).history()[-1])
        assert int(values["global_step"]) == 8
    return [seen, contents(neighbour) == before]


@case
def large_values(folder: Path) -> Any:
    """What is read in pieces is found there as well."""
    most, files.pieces.PIECE_BYTES = files.pieces.PIECE_BYTES, 8
    values = {"w": np.arange(6, dtype=np.float32).reshape(3, 2)}
    prefix = str(folder / NAMES[0] / "m-1")
    (folder / NAMES[0]).mkdir(parents=True, exist_ok=True)
    files.write(prefix, {**values, "v": np.float32(1)})
    found = np.asarray(files.read(prefix, large=False)["w"]).tolist()
    files.pieces.PIECE_BYTES = most
    return [files.exists(prefix), found]


@case
def by_hand(folder: Path) -> Any:
    """What people write to the file `checkpoint`: step to begin with, or the line that refuses."""
    newest = 'model_checkpoint_path: "{}"'.format
    listed = [f'all_model_checkpoint_paths: "model.ckpt-{step}"' for step in (0, 2, 4, 6)]
    states = {
        "first_line_alone": [newest("model.ckpt-4")],
        "moved": [newest("/elsewhere/model.ckpt-4")],
        "an_earlier_one": [newest("model.ckpt-2"), *listed],
        "missing_but_others": [newest("model.ckpt-9"), *listed[:2]],
        "missing": [newest("model.ckpt-9")],
        "foreign": [newest("/models/inception.ckpt-100")],
        "absent": [],
    }
    others = ("moved", "missing_but_others", "foreign")
    seen: dict[str, Any] = {}
    whole = intact(folder / "whole")
    for name, lines in states.items():
        for kind in ("supervisor", "monitored") if name not in others else ("supervisor",):
            logdir = Path(shutil.copytree(str(whole), str(folder / kind / name)))
            (logdir / "checkpoint").unlink()
            if lines:
                (logdir / "checkpoint").write_text("".join(f"{line}\n" for line in lines))
            before = contents(logdir)
            try:
                first = trained(logdir, 0) if kind == "supervisor" else monitored(logdir, 8)
                seen[f"{name} {kind}"] = [first, checkpoints(logdir)[-1]]
            except (compat.UserError, tf1.errors.OpError) as error:
                kept = contents(logdir)
                new = {n for n in kept if n not in before and "tfevents" not in n}
                same = all(kept[n] == before[n] for n in before)
                said = str(error).replace(str(logdir), "FOLDER")
                seen[f"{name} {kind}"] = [said, sorted(new), same]
    return seen


@case
def its_checkpoints_are_gone(folder: Path) -> Any:
    for path in intact(folder).glob("model.ckpt*"):
        path.unlink()
    fresh()
    Program()
    said = refusal(lambda: compat.Supervisor(logdir=str(folder)))
    (folder / "checkpoint").unlink()
    return [said.replace(str(folder), "FOLDER"), trained(folder, 1)]


@case
def a_url(folder: Path) -> Any:
    """A file system in memory, which TensorFlow has, and lists, since 2.5 or so."""
    try:
        tf1.gfile.MakeDirs("ram://runs/listed")
        with tf1.gfile.GFile("ram://runs/listed/file", "w") as file:
            file.write("a")
        is_listed = "file" in tf1.gfile.ListDirectory("ram://runs/listed")
    except tf1.errors.OpError:
        return None
    if not is_listed:
        return None
    steps = [trained("ram://runs/a", 2) for _ in range(2)]
    steps.append(monitored("ram://runs/a", 6))
    newest = os.path.basename(CheckpointIO("ram://runs/a").history()[-1])
    return [steps, newest, sorted(path.name for path in Path().iterdir() if "ram" in path.name)]


@case
def left_by_a_killed_chief(folder: Path) -> Any:
    """Only what carries the token of the process that the lock names is removed."""
    dead, alive = "0123456789abcdef", "fedcba9876543210"
    for name in (
        f".unfinished-{dead}-3",
        f".unfinished-{alive}-0",
        "dataset-2016_parts",
        "m-7_parts",
    ):
        (folder / name / "a").mkdir(parents=True)
    (folder / "m-7.data-00000-of-00001.tempstate12").touch()
    holder = {"host": "a", "pid": 1, "since": "2016-01-01 00:00:00 +0000", "token": dead}
    before = {path.name for path in folder.iterdir()}
    (folder / folder_lock.FILE).write_text(json.dumps(holder))
    trained(folder, 1)
    return [sorted(before - {path.name for path in folder.iterdir()}), checkpoints(folder)]


@case
def the_lock_leaves_nothing(folder: Path) -> Any:
    """A folder that it had to make included."""
    first, second = (folder_lock.FolderLock(str(folder / "a" / "b")) for _ in range(2))
    first.close()
    held = (folder / "a" / "b" / folder_lock.FILE).exists()
    second.close()
    second.close()
    return [held, folder.exists()]


@case
def the_lock_is_a_link(folder: Path) -> Any:
    folder.mkdir()
    target = folder / "precious"
    target.write_text("mine")
    (folder / folder_lock.FILE).symlink_to(target)
    weight = compat.get_or_create_global_step()
    said = refusal(lambda: compat.Supervisor(logdir=str(folder)))
    assert current_runtime().variables() and weight is not None
    return [said.replace(str(folder), "FOLDER"), target.read_text()]


if __name__ == "__main__":
    run()
