"""Brings checkpoints over by `python -m compat convert-checkpoint`; prints what it said, by case.

`old` and `like` are folders with one checkpoint each; what a case returns begins with the exit
code, the lines on standard output and those on standard error.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compat import tf1
from compat.checkpoint import files

if TYPE_CHECKING:
    from tests.compat.programs import graph_conversions
    from tests.compat.programs.cases import case, run
    from tests.compat.programs.converting import convert, written
else:
    import graph_conversions
    from cases import case, run
    from converting import convert, written

GOLDEN = Path(__file__).parents[1] / "checkpoints" / "golden"
ORIGINALS = ("original-tf1.4.1-v1", "original-tf1.4.1-v2", "original-tf1.15.5")
RENAMES = [
    "weights/Variable:hidden/kernel",
    "weights/Variable_1:output/kernel",
    "biases/Variable:hidden/bias",
    "biases/Variable_1:output/bias",
]
FRESH = ["--fresh=*/Adam*", "--fresh=beta?_power"]
RENAMED = [f"--rename={pair}" for pair in RENAMES]
COMPLETE = ["old", "new", "--like=like", *RENAMED, *FRESH, "--cast=global_step"]


def enter(folder: Path, original: str = ORIGINALS[-1]) -> None:
    """Goes to a folder that holds the original example's checkpoint, and one to be like."""
    folder.mkdir()
    os.chdir(str(folder))
    shutil.copytree(str(GOLDEN / original), "old")
    shutil.copytree(str(GOLDEN / "tf2.21.0-modern"), "like")


def matched(folder: Path, old: dict[str, Any], like: dict[str, Any], *argv: str) -> list[Any]:
    """Converts between two checkpoints of these values; returns also what is in the folder."""
    folder.mkdir()
    os.chdir(str(folder))
    written("old", **old)
    written("like", **like)
    return [*convert("old", "new", "--like=like", *argv), sorted(os.listdir("."))]


@case
def lists(folder: Path) -> Any:
    said = []
    for original in ORIGINALS:
        enter(folder.with_name(original), original)
        said.append(convert("old"))
    return said


@case
def converts(folder: Path) -> Any:
    """Also: what is in the new folder, and whether each value is where it belongs."""
    said = []
    for original in ORIGINALS:
        enter(folder.with_name(original), original)
        report = convert(*COMPLETE)
        old, new = files.read("old/model.ckpt-30"), files.read("new/model.ckpt-30")
        like = files.read("like/model.ckpt-20")
        pairs = dict(reversed(pair.split(":")) for pair in RENAMES)
        right = [np.array_equal(new[target], old[source]) for target, source in pairs.items()]
        right += [np.array_equal(new[n], like[n]) for n in like if "Adam" in n or "beta" in n]
        right += [sorted(new) == sorted(like), new["global_step"].dtype == np.int64]
        state = Path("new/checkpoint").read_text(encoding="utf-8").splitlines()
        said.append([*report, sorted(os.listdir("new")), right, int(new["global_step"]), state])
    return said


@case
def shows_and_writes_nothing(folder: Path) -> Any:
    enter(folder)
    before = sorted(os.listdir("."))
    report = convert("old", *COMPLETE[2:])
    return [*report, sorted(os.listdir(".")) == before]


@case
def guesses_nothing(folder: Path) -> Any:
    enter(folder)
    return [*convert("old/model.ckpt-30", "new", "--like=like"), sorted(os.listdir("."))]


@case
def takes_a_file_of_renames(folder: Path) -> Any:
    enter(folder)
    text = "# Those of 2016.\n\n" + "   # a layer\n".join(RENAMES) + "\n"
    Path("renames.txt").write_text(text, encoding="utf-8")
    others = [word for word in COMPLETE if not word.startswith("--rename")]
    return convert(*others, "--renames=renames.txt")


@case
def same_names(folder: Path) -> Any:
    return matched(folder, {"a": 1.0, "b": [1, 2], "extra": 3.0}, {"a": 7.0, "b": [0, 0]})


@case
def swapped(folder: Path) -> Any:
    """Also their slots, which follow them."""
    values = {"a": np.float32(1), "b": np.float32(2)}
    values.update({"a/Momentum": np.float32(3), "b/Momentum": np.float32(4)})
    report = matched(folder, values, values, "--rename=a:b", "--rename=b:a")
    new = files.read("new/model.ckpt")
    return [*report, [float(new[name]) for name in sorted(new)]]


@case
def renamed_away(folder: Path) -> Any:
    return matched(folder, {"a": 1.0}, {"a": 1.0, "b": 2.0}, "--rename=a:b")


@case
def other_shapes(folder: Path) -> Any:
    old = {"w": np.zeros([2, 3]), "v": np.zeros([4])}
    return matched(folder, old, {"w": np.zeros([3, 2]), "u": np.zeros([5])}, "--rename=v:u")


@case
def other_dtypes(folder: Path) -> Any:
    like = {name: np.int64(0) for name in ("half", "step", "told")}
    return matched(folder, {"half": 2.5, "step": 3.0, "told": 4.0}, like, "--cast=[ht]*")


@case
def rounds(folder: Path) -> Any:
    like = {"small": np.float32(0), "text": b"new"}
    report = matched(folder, {"small": 0.1, "text": b"older"}, like, "--cast=small")
    new = files.read("new/model.ckpt")
    return [*report, new["small"].dtype.name, new["text"].item().decode()]


@case
def many_of_a_kind(folder: Path) -> Any:
    return matched(folder, {f"v{number}": 1.0 for number in range(7)}, {"w": 1.0})


@case
def not_finite(folder: Path) -> Any:
    """One of the old values, and one that is to be taken from the other checkpoint."""
    folder.mkdir()
    os.chdir(str(folder))
    written("fine", w=np.float32([1, 2]))
    _write_unchecked("bad", w=np.float32([1, np.nan]))
    old = convert("bad", "new", "--like=fine")
    fresh = convert("fine", "new", "--like=bad", "--fresh=w")
    return [old, fresh, sorted(os.listdir("."))]


def _write_unchecked(folder: str, **values: Any) -> None:
    """Writes a checkpoint as TensorFlow's own saver does, which saves what it finds."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        for name, value in values.items():
            tf1.get_variable(name, initializer=value)
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, os.path.abspath(f"{folder}/model.ckpt"))


@case
def object_based(folder: Path) -> Any:
    enter(folder)
    with tf1.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("w", initializer=np.float32(1))
        session.run(variable.initializer)
        checkpoint = tf1.train.Checkpoint(w=variable)
        checkpoint.save("objects/model", session=session)
        prefix = "objects/model-1"
        said = [
            convert(prefix),
            convert("old", "new", f"--like={prefix}", "--rename=global_step:w"),
        ]
        status = checkpoint.restore("new/model.ckpt").assert_consumed()
        status.run_restore_ops(session)
        value = float(session.run(variable))
    files.write(os.path.abspath("plain"), {"w": np.float32(0)})
    said.append(convert("new/model.ckpt", "back", "--like=plain"))
    return [said, value, float(files.read("back/model.ckpt")["w"])]


@case
def refused(folder: Path) -> Any:
    """Wrong command lines and files, by what is wrong."""
    enter(folder)
    Path("empty").mkdir()
    Path("renames.txt").write_text("a:b\nno pair\n", encoding="utf-8")
    before = sorted(os.listdir("."))
    like = ["old", "new", "--like=like"]
    wrong = {
        "no_like": ["old", "new"],
        "renames_without_like": ["old", "--rename=a:b"],
        "new_is_there": ["old", "empty", "--like=like"],
        "no_checkpoint": ["old/model.ckpt-31"],
        "no_checkpoint_of_like": ["old", "new", "--like=missing"],
        "a_file_of_it": ["old/model.ckpt-30.index"],
        "no_list": ["empty"],
        "no_pair": [*like, "--rename=a"],
        "no_pair_in_a_file": [*like, "--renames=renames.txt"],
        "no_file": [*like, "--renames=nowhere.txt"],
        "no_such_old_name": [*like, "--rename=weights/W:hidden/kernel"],
        "no_such_new_name": [*like, "--rename=weights/Variable:hidden/kernels"],
        "twice": [*like, RENAMED[0], "--rename=weights/Variable_1:hidden/kernel"],
        "renamed_and_fresh": [*like, RENAMED[0], "--fresh=hidden/*"],
        "nothing_fresh": [*like, "--fresh=*/Adagrad"],
        "nothing_cast": [*like, "--cast=step"],
        "no_folder_can_be_made": ["old", "renames.txt/new", *COMPLETE[2:]],
    }
    said = {name: convert(*argv) for name, argv in wrong.items()}
    return [said, sorted(os.listdir(".")) == before, os.listdir("empty")]


if __name__ == "__main__":
    assert graph_conversions  # Its cases are of this program.
    run()
