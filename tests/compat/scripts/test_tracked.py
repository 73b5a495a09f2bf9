"""What `--track` records of scripts that write several folders, or are started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.errors import UserError
from compat.tracking.files import lock
from compat.tracking.mlflow import earlier_run, spool
from compat.tracking.tensorboard.run_names import RunNames
from tests.conftest import PACKAGES

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


@pytest.mark.long
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


ENDLESS = """
import time
import tensorflow as tf
x = tf.placeholder(tf.float32, [])
summary = tf.summary.scalar("loss", x)
with tf.Session() as s:
    writer = tf.summary.FileWriter("logs")
    writer.add_summary(s.run(summary, {x: 1.0}), 1)
    writer.flush()
    print("ready", flush=True)
    s.run(tf.FIFOQueue(1, tf.int32, shapes=[[]]).dequeue())
"""


@pytest.mark.long
def test_a_run_that_a_signal_ends_is_killed_and_not_failed(tmp_path: Path) -> None:
    """While the script waits in TensorFlow, which Python's own handlers do not end."""
    (tmp_path / "script.py").write_text(ENDLESS)
    env = {**os.environ, "MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "PYTHONPATH": PACKAGES}
    process = subprocess.Popen(
        [sys.executable, "-m", "compat", "run", "--track", "script.py"],
        cwd=str(tmp_path),
        env=env,
        stdout=subprocess.PIPE,
    )
    deadline = threading.Timer(280, process.kill)
    deadline.start()
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        said = process.stdout.read().decode()
        assert process.wait(280) == 143
        assert "TensorBoard:  tensorboard --logdir" in said
        records = [record for record, _ in spool.read(str(tmp_path / "logs"))]
        assert records[-1]["kind"] == "end"
        assert records[-1]["status"] == "KILLED"
    finally:
        deadline.cancel()
        process.kill()
        process.communicate(timeout=60)
