"""`python -m compat migrate --to=compat`: an old script as a program that either runtime runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.commands.migrate import main

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
PAGE = Path(__file__).resolve().parents[3] / "docs" / "migrate-steps.md"
OLD, NEW = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
HEAD = """\
import sys

import compat
import compat.v1

compat.v1.disable_v2_behavior()
# --runtime=legacy, the default, or --runtime=modern.
compat.select_runtime(compat.runtime_from(sys.argv))

"""
# A class in a module, a hook of the script's own, and an operation made while the session runs.
MODEL = """\
import tensorflow as tf


class Model(object):
    def __init__(self, rate):
        self.x = tf.placeholder(tf.float32, [None, 4], name="x")
        self.y = tf.placeholder(tf.float32, [None, 1], name="y")
        weights = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
        self.rate = tf.Variable(rate, trainable=False)
        self.loss = tf.reduce_mean(tf.square(tf.matmul(self.x, weights) - self.y))
        optimizer = tf.train.GradientDescentOptimizer(self.rate)
        self.train = optimizer.minimize(self.loss, tf.train.get_or_create_global_step())


def setter(cluster):
    return tf.train.replica_device_setter(cluster=cluster)
"""
SCRIPT = """\
import numpy as np
import tensorflow as tf
from model import Model


class Print(tf.train.SessionRunHook):
    def before_run(self, context):
        return tf.train.SessionRunArgs(model.loss)

    def after_run(self, context, values):
        print("hook %.4f" % values.results)


np.random.seed(1)
model = Model(0.5)
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    for i in range(6):
        batch = np.random.rand(8, 4)
        feed = {model.x: batch, model.y: batch.sum(1, keepdims=True)}
        sess.run(tf.assign(model.rate, 0.5 / (i + 1)))
        _, loss = sess.run([model.train, model.loss], feed)
        print("%d: %.4f" % (tf.train.global_step(sess, tf.train.get_global_step()), loss))
with tf.train.MonitoredTrainingSession(hooks=[Print()]) as sess:
    for _ in range(3):
        sess.run(model.train, feed)
print("%s" % [v.name for v in tf.global_variables()])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def migrated(text: str) -> str:
    """Returns what a script of this folder becomes, which imports `model.py` or not."""
    Path("train.py").write_text(text, encoding="utf-8")
    Path("model.py").write_text(MODEL, encoding="utf-8")
    assert main(["--to=compat", "train.py"]) == 0
    return Path("train_compat.py").read_text(encoding="utf-8")


def test_names_are_those_of_compat_behind_a_head_that_chooses(folder: Path) -> None:
    new = OLD.replace("import tensorflow as tf", "import compat.v1 as tf")
    for name in ("ClusterSpec", "Server", "Supervisor", "replica_device_setter"):
        new = new.replace(f"tf.train.{name}(", f"compat.{name}(")
    new = new.replace("server.join()", "sys.exit(server.join())")
    assert migrated(OLD) == HEAD + new == NEW
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.py",
        "train.py",
        "train_compat.py",
    ]


def test_a_module_is_written_beside_with_names_of_compat(folder: Path) -> None:
    text = migrated(SCRIPT.replace("import Model", "import Model, setter"))
    assert (
        text.startswith(f"{HEAD}import numpy") and "\nfrom model_v1 import Model, setter\n" in text
    )
    assert "with compat.MonitoredTrainingSession(" in text
    new = (folder / "model_v1.py").read_text(encoding="utf-8")
    assert new.startswith("import sys\n\nimport compat\nimport compat.v1 as tf\n")
    assert "    return compat.replica_device_setter(cluster=cluster)\n" in new
    assert "select_runtime" not in new


@pytest.mark.long
def test_it_prints_the_same_on_either_runtime(
    folder: Path, run_step: Callable[..., Any], runtimes: list[str]
) -> None:
    text = migrated(SCRIPT)
    ran = [run_step(text, runtime) for runtime in runtimes]
    assert [run.code for run in ran] == [0] * len(ran), ran
    lines = [re.findall(r"(?m)^(?:hook|\d:|\[).*", run.out) for run in ran]
    assert len(lines[0]) == 10 and lines[0] == lines[-1], lines


@pytest.mark.long
def test_a_parameter_server_and_a_worker_end_well(
    folder: Path, run_pair: Callable[[str, str], str], runtime: str
) -> None:
    said = run_pair(migrated(OLD), runtime)
    # Nothing orders the step that a call fetches, and the update.
    first, last = re.findall(r"step [01], loss (\S+)|at the end (\S+)", said)
    assert (first[0], last[1]) == ("3.555", "0.165")


def test_a_flag_of_that_name_is_refused_with_its_line(folder: Path) -> None:
    text = (
        'import tensorflow as tf\nprint "old"\ntf.flags.DEFINE_string("runtime", "", "Its own.")\n'
    )
    Path("train.py").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="^train.py:3: it has a flag `runtime` of its own") as found:
        main(["--to=compat", "train.py"])
    assert "\n" not in str(found.value)
    assert [path.name for path in folder.iterdir()] == ["train.py"]


def test_a_migrated_program_and_a_folder_are_told_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    migrated(OLD)
    capsys.readouterr()
    assert main(["--to=compat", "train_compat.py"]) == 0
    assert capsys.readouterr().out == "train_compat.py: is migrated already; not changed\n"
    # One that is in today's names alone gets the head.
    assert main(["--output=today.py", "train.py"]) == main(["--to=compat", "today.py"]) == 0
    assert Path("today_compat.py").read_bytes() == Path("train_compat.py").read_bytes()
    with pytest.raises(UserError, match="--to=compat takes a script"):
        main(["--to=compat", ".", "--output=new"])
