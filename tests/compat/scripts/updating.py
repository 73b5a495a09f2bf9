"""A script with a linear model, for tests that write its update in many ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.compat.scripts.conftest import run_python

_MODEL = """
x = tf.placeholder(tf.float32, [None, 4], name="x")
y = tf.placeholder(tf.float32, [None, 1], name="y")
w = tf.Variable(tf.zeros([4, 1]), name="w")
b = tf.Variable(tf.zeros([1]), name="b")
frozen = tf.Variable(tf.zeros([1]), name="frozen")
step = tf.Variable(0, name="global_step", trainable=False)
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b + tf.stop_gradient(frozen) - y))
opt = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)
"""
_LOOP = """
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    np.random.seed(1)
    for i in range(30):
        batch = np.random.rand(8, 4)
        _, value = session.run([train, loss], {x: batch, y: batch.sum(1, keepdims=True)})
"""


def script(flags: str, update: str, module: str = "tensorflow") -> str:
    """Returns the script, with lines that define its flags and lines that make `train`."""
    head = f"import numpy as np\nimport {module} as tf\n\nflags = tf.app.flags\n"
    return head + flags + _MODEL + update + _LOOP


def assert_it_is_equal_and_trains(text: str, folder: Path, has_averages: bool) -> None:
    """Proves the experiment that the script becomes, and trains it on the modern runtime."""
    (folder / "old.py").write_text(text, encoding="utf-8")
    migrate = ["-m", "compat", "migrate", "--to=experiment", "--prove", "old.py"]
    proven = run_python(*migrate, cwd=folder)
    assert "equal: 30 losses of 30 training calls" in proven.stdout, proven
    trained = run_python("old_experiment.py", "--runtime=modern", "--logdir=run", cwd=folder)
    assert "Final Loss" in trained.stdout, trained
    if has_averages:
        from compat import tf

        last = tf.train.latest_checkpoint(str(folder / "run"))
        assert last is not None
        (name,) = [n for n, _ in tf.train.list_variables(last) if re.match("w/.*Average", n)]
        average, value = (tf.train.load_variable(last, n) for n in (name, "w"))
        assert average.mean() == pytest.approx(value.mean(), rel=0.1)
