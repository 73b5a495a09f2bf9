"""`python -m compat migrate --to=experiment` of averages that some tasks or runs alone keep."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compat
from compat.errors import UserError
from compat.scripts.migrating.experiment import writing

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
PACKAGES = str(Path(compat.__file__).resolve().parents[1])
NET = """
import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("task_index", 0, "Number of the task.")
flags.DEFINE_boolean("average", True, "Whether averages are kept.")
FLAGS = flags.FLAGS
is_chief = (FLAGS.task_index == 0)

x = tf.placeholder(tf.float32, [None, 4], name="x")
y = tf.placeholder(tf.float32, [None, 1], name="y")
w = tf.Variable(tf.zeros([4, 1]), name="w")
step = tf.Variable(0, name="global_step", trainable=False)
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
opt = tf.train.GradientDescentOptimizer(0.05)
"""
LOOP = """
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    np.random.seed(1)
    for i in range(30):
        batch = np.random.rand(8, 4)
        _, value = session.run([train, loss], {x: batch, y: batch.sum(1, keepdims=True)})
"""
# What waits for the update in a branch, and what waits for that.
FORMS = {
    "an operation after both": """
train = opt.minimize(loss, global_step=step)
if CONDITION:
    ema = tf.train.ExponentialMovingAverage(0.5, step)
    averages = ema.apply(tf.trainable_variables())
    # Both.
    with tf.control_dependencies([averages, train]):
        train = tf.no_op()
""",
    "a group in a branch": """
train = opt.minimize(loss, global_step=step)
ema = tf.train.ExponentialMovingAverage(0.5, step)
if CONDITION:
    with tf.control_dependencies([train]):
        train = tf.group(ema.apply([w]))
else:
    train = tf.group(train)
""",
    "an update in each branch": """
if CONDITION:
    update = opt.minimize(loss, global_step=step)
    with tf.control_dependencies([update]):
        train = tf.train.ExponentialMovingAverage(0.5, step).apply([w])
else:
    train = opt.minimize(loss, global_step=step)
""",
}
CHIEF = "what the chief alone ran with its updates, all workers run with theirs"


def migrated(form: str) -> Any:
    text = (NET + form + LOOP).replace("import tensorflow as tf", "import compat.v1 as tf")
    return writing.migrate("old.py", text)


@pytest.mark.parametrize("kind", FORMS)
def test_a_flag_chooses_what_follows_the_update(kind: str) -> None:
    made = migrated(FORMS[kind].replace("CONDITION", "FLAGS.average"))
    _, after = made.text.split("    def after_update(self, step, optimizer):\n")
    assert re.search(r"return tf.group\(\*\(\[.*\] if FLAGS.average else \[\]\)\)\n", after), after
    assert "no_op" not in after.partition("# compat ")[0]
    assert not made.remarks


@pytest.mark.parametrize("condition", ["is_chief", "FLAGS.task_index == 0"])
def test_what_the_chief_runs_all_workers_run(condition: str) -> None:
    made = migrated(FORMS["an operation after both"].replace("CONDITION", condition))
    assert "        return averages\n" in made.text
    assert "task_index" not in made.text.partition("# compat ")[0]
    assert [remark for _, remark in made.remarks] == [CHIEF]


def test_a_branch_without_an_update_is_refused() -> None:
    form = "train = opt.minimize(loss)\nif FLAGS.average:\n    train = tf.no_op()\n"
    with pytest.raises(UserError, match="it runs no update here"):
        migrated(form)


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["is_chief", "FLAGS.average"])
@pytest.mark.parametrize("kind", FORMS)
def test_each_form_is_equal_and_keeps_averages_on_the_modern_runtime(
    kind: str, condition: str, tmp_path: Path
) -> None:
    form = FORMS[kind].replace("CONDITION", condition)
    (tmp_path / "old.py").write_text(NET + form + LOOP, encoding="utf-8")
    said = run(["-m", "compat", "migrate", "--to=experiment", "--prove", "old.py"], tmp_path)
    assert re.search("equal: 30 losses of 30 training calls", said), said
    said = run(["old_experiment.py", "--runtime=modern", "--logdir=run"], tmp_path)
    assert "Final Loss" in said, said
    from compat import tf

    last = tf.train.latest_checkpoint(str(tmp_path / "run"))
    assert last is not None
    (name,) = [n for n, _ in tf.train.list_variables(last) if re.match("w/.*Average", n)]
    average, value = (tf.train.load_variable(last, n) for n in (name, "w"))
    assert average.mean() == pytest.approx(value.mean(), rel=0.1)


def run(argv: list[str], folder: Path) -> str:
    """Runs a program; returns what it prints."""
    env = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3"}
    how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "timeout": 300}
    done = subprocess.run([sys.executable, *argv], cwd=str(folder), env=env, **how)
    return done.stdout.decode()
