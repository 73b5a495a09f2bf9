"""What `--track` records of scripts that write several folders, or are started again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.errors import UserError
from compat.tracking.files import lock
from compat.tracking.mlflow import earlier_run, spool
from compat.tracking.tensorboard.run_names import RunNames

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

TWO_WRITERS = """
import os
import tensorflow as tf
tf.app.flags.DEFINE_integer("first", 0, "")
first = tf.app.flags.FLAGS.first
x = tf.placeholder(tf.float32, [])
tf.summary.scalar("loss", tf.square(x))
merged = tf.summary.merge_all()
with tf.Session() as s:
    trains = tf.summary.FileWriter(os.path.join("logs", "train"), s.graph)
    tests = tf.summary.FileWriter(os.path.join("logs", "test"))
    for k in range(first, first + 3):
        trains.add_summary(s.run(merged, {x: 1.0}), k)
        tests.add_summary(s.run(merged, {x: 2.0}), k)
    trains.close()
    tests.close()
"""


def points(folder: Path) -> list[tuple[str, int, float]]:
    """Returns name, step and value of each metric of a spool."""
    records = [json.loads(line) for line in (folder / spool.SPOOL).read_text().splitlines()]
    return [
        (name, record["step"], value)
        for record in records
        if record["kind"] == "metrics"
        for name, value in record["values"].items()
    ]


def test_metrics_are_named_by_folder_and_each_start_is_a_run(
    run_script: RunScript, tmp_path: Path
) -> None:
    """No server is there, which costs some seconds; what it is to be sent is in files."""
    env = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    once = [(f"{name}/loss", k, v) for k in range(3) for name, v in (("train", 1), ("test", 4))]
    later = [(name, step + 2, value) for name, step, value in once]
    for argument in ("--first=0", "--first=0", "--first=2"):  # The third one resumes.
        ran = run_script(TWO_WRITERS, argument, options=("--track",), env=env, seconds=280)
        assert ran.code == 0, ran.out + ran.err
        assert f"TensorBoard:  tensorboard --logdir {tmp_path / 'logs'}\n" in ran.out
        resumes = "MLflow: the points of steps 2 to 2 stay in the run beside those that are logged"
        assert (resumes in ran.out) == (argument == "--first=2"), ran.out
    logdir = tmp_path / "logs" / "train"
    assert points(logdir / "earlier-runs" / "1") == once
    assert points(logdir) == once + later


@pytest.mark.parametrize(
    ("folders", "prefixes", "command"),
    [
        (["/a/logs"], [""], "--logdir /a/logs"),
        (["/a/logs", "/a/logs/eval"], ["", "eval/"], "--logdir /a/logs"),
        (["/a/b/train", "/a/b/c/test"], ["train/", "c/test/"], "--logdir /a/b"),
        (["/a/x y", "/b/z"], ["a/x y/", "b/z/"], "--logdir_spec '/a/x y,/b/z'"),
    ],
)
def test_names_are_those_of_tensorboard(
    folders: list[str], prefixes: list[str], command: str
) -> None:
    names = RunNames()
    for folder in folders:
        names.add(folder)
    assert [names.prefix(folder) for folder in folders] == prefixes
    assert names.command() == f"tensorboard {command}"


def test_a_folder_that_comes_later_is_named_beside_the_first() -> None:
    names = RunNames()
    names.add("/logs/train")
    assert names.prefix("/logs/train") == ""
    names.add("/logs/test")
    assert (names.prefix("/logs/train"), names.prefix("/logs/test")) == ("", "test/")


def test_a_run_that_is_being_sent_stays(tmp_path: Path) -> None:
    written = spool.Spool(str(tmp_path))
    written.append("metrics", step=3, time=1, values={"loss": 1.0})
    written.close()
    resumed = [earlier_run.is_resumed(str(tmp_path), step) for step in (None, 0, 3, 4)]
    assert resumed == [False, False, False, True]
    with lock(str(tmp_path / spool.SENDING), "busy"), pytest.raises(UserError, match="being sent"):
        earlier_run.set_aside(str(tmp_path))
    earlier_run.set_aside(str(tmp_path))
    assert (tmp_path / "earlier-runs" / "1" / spool.SPOOL).exists()
    assert not (tmp_path / spool.SPOOL).exists()
