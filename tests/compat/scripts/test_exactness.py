"""The losses of the model of 2016, as TensorFlow 1.15.5 computed them.

`golden_2016.json` holds what the script prints there by itself. By `compat run` it has to print the
same on every TensorFlow, that one included.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import numpy as np
import pytest

from compat.scripts.commands import migrate as command
from tests.conftest import RUNTIMES

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import Ran, RunScript

GOLDEN = Path(__file__).parent / "golden_2016.json"
SCRIPT = """
from __future__ import print_function
import numpy as np
import tensorflow as tf
global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0),
                              trainable=False)
with tf.name_scope('input'):
  x = tf.placeholder(tf.float32, shape=[None, 784], name="x-input")
  y_ = tf.placeholder(tf.float32, shape=[None, 10], name="y-input")
tf.set_random_seed(1)
with tf.name_scope("weights"):
  W1 = tf.Variable(tf.random_normal([784, 100]))
  W2 = tf.Variable(tf.random_normal([100, 10]))
with tf.name_scope("biases"):
  b1 = tf.Variable(tf.zeros([100]))
  b2 = tf.Variable(tf.zeros([10]))
with tf.name_scope("softmax"):
  z2 = tf.add(tf.matmul(x, W1), b1)
  a2 = tf.nn.sigmoid(z2)
  z3 = tf.add(tf.matmul(a2, W2), b2)
  y = tf.nn.softmax(z3)
with tf.name_scope('cross_entropy'):
  cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
with tf.name_scope('train'):
  optimizer = tf.train.GradientDescentOptimizer(0.001)
  train_op = optimizer.minimize(cross_entropy, global_step=global_step)
rng = np.random.RandomState(7)
images = rng.rand(5000, 784).astype(np.float32)
labels = np.eye(10)[rng.randint(0, 10, 5000)]
with tf.Session() as sess:
  sess.run(tf.global_variables_initializer())
  for i in range(50):
    batch = slice(100 * i, 100 * i + 100)
    _, cost = sess.run([train_op, cross_entropy], {x: images[batch], y_: labels[batch]})
    print("%.6f" % cost)
"""
# 1e-8 is lost where it is added to 1 first, and the loss is infinite where `p` is 1.
SATURATED = """
import numpy as np
import tensorflow as tf
x = tf.placeholder(tf.float32, [None], name="x")
w = tf.get_variable("w", initializer=1.0)
p = tf.sigmoid(w * x)
loss = tf.reduce_mean(-tf.log(1 - p + 1e-8))
train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(2):
        value = sess.run([loss, train], {x: np.float32([50, 0.5])})[0]
        print("%.5f" % value)
    print("%.5f" % sess.run(loss, {x: np.float32([50, 0.5])}))
"""
AS_IN_1_4 = "9.69738\n9.68536\n9.67369\n"


def assert_losses_are_those_of_their_time(printed: str) -> None:
    losses = [float(line) for line in printed.split()]
    np.testing.assert_allclose(losses, json.loads(GOLDEN.read_text()), rtol=0, atol=1e-5)


@pytest.mark.feature("scripts")
def test_losses_are_those_of_their_time(run_script: RunScript) -> None:
    assert_losses_are_those_of_their_time(run_script(SCRIPT).out)


@pytest.mark.feature("scripts")
def test_a_small_constant_in_a_logarithm_counts(run_script: RunScript) -> None:
    assert run_script(SATURATED).out == AS_IN_1_4


@pytest.mark.once
def test_it_counts_on_either_runtime(
    run_step: Callable[[str, str], Ran], runtime: str, tmp_path: Path
) -> None:
    pytest.importorskip("asttokens")
    pytest.importorskip("fissix")
    (tmp_path / "old.py").write_text(SATURATED, encoding="utf-8")
    assert command.main(["--to=compat", str(tmp_path / "old.py")]) == 0
    text = (tmp_path / "old_compat.py").read_text(encoding="utf-8")
    assert run_step(text, runtime).out == AS_IN_1_4


@pytest.mark.skipif("modern" in RUNTIMES, reason="only TensorFlow 1.15 runs the script by itself")
def test_losses_were_not_changed_by_us(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    printed = subprocess.check_output(
        [sys.executable, "script.py"], cwd=str(tmp_path), timeout=120, universal_newlines=True
    )
    assert_losses_are_those_of_their_time(printed)
