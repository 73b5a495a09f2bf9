"""`python -m compat migrate --to=experiment`: batches of the tutorials' reader, and how many."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat.scripts.migrating.experiment import writing
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# A recurrent network of the tutorials, which reads rows as sequences.
ROWS = """\
import compat.v1 as tf
from compat.v1.examples.tutorials.mnist import input_data

batch_size, steps = 50, 28

def main(_):
    with tf.device(None):
        mnist = input_data.read_data_sets("MNIST_data", one_hot=True)
        x = tf.placeholder(tf.float32, [None, steps, 28])
        y = tf.placeholder(tf.float32, [None, 10])
        weights = tf.Variable(tf.zeros([28 * steps, 10]))
        logits = tf.matmul(tf.reshape(x, [-1, 28 * steps]), weights)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    sv = tf.train.Supervisor()
    with sv.managed_session() as sess:
        for i in range(1, 100 + 1):
            xs, ys = mnist.train.next_batch(batch_size)
            xs = xs.reshape((batch_size, steps, 28))
            sess.run(train, {x: xs, y: ys})

tf.app.run()
"""


def written(text: str) -> str:
    return writing.migrate("old.py", text).text


def test_a_reader_in_the_block_and_the_shape_of_its_batches_are_the_data() -> None:
    found = written(ROWS)
    data = found[found.index("    def data") : found.index("    def loss")]
    assert '"x": np.asarray(part.images.reshape(-1, steps, 28), "float32"),\n' in data
    assert '        mnist = input_data.read_data_sets("MNIST_data", one_hot=True)\n' in data
    assert "read_data_sets" not in found[found.index("    def loss") :].partition("# compat")[0]
    assert "max_steps: int | None = 100\n" in found
    assert "batch_size: int = 50\n" in found
    assert '"validation": arrays(mnist.validation),' in data
    # Which the reader then has none of.
    found = written(ROWS.replace("one_hot=True", "one_hot=True, validation_size=0"))
    assert "mnist.validation" not in found


@pytest.mark.long
def test_it_trains_on_rows(tmp_path: Path, mnist_folder: Path) -> None:
    (tmp_path / "old_experiment.py").write_text(written(ROWS), encoding="utf-8")
    shutil.copytree(mnist_folder, tmp_path / "MNIST_data")
    ran = run_python("old_experiment.py", "--logdir=run", "--max_steps=4", cwd=tmp_path)
    assert ran.returncode == 0 and "Final Loss:" in ran.stdout, ran


def test_a_batch_may_be_fed_by_its_numbers() -> None:
    text = ROWS.replace("            xs = xs.reshape((batch_size, steps, 28))\n", "")
    text = text.replace("xs, ys = mnist", "batch = mnist")
    fed = "x: batch[0].reshape([-1, steps, 28]), y: batch[1]"
    data = written(text.replace("x: xs, y: ys", fed))
    assert '"x": np.asarray(part.images.reshape(-1, steps, 28), "float32"),\n' in data
    assert '"y": np.asarray(part.labels, "float32"),\n' in data


@pytest.mark.parametrize("change", ["xs = xs.reshape((50, 28, 28)) / 2", "xs[:, 0] = 1", "xs -= 1"])
def test_what_else_a_loop_does_to_a_batch_is_done_to_it(change: str) -> None:
    found = written(ROWS.replace("xs = xs.reshape((batch_size, steps, 28))", change))
    data = found[found.index("    def data") : found.index("    def loss")]
    lines = ["xs, ys = mnist.train.next_batch(batch_size)", change]
    assert "".join(f"            {line}\n" for line in lines) in data


@pytest.mark.parametrize(
    ("loop", "steps"),
    [
        ("for i in range(20, 100 - 10):", 70),
        ("i = 1\n        while i * batch_size < 2000:", 40),
        ("i = 1\n        while i < 2000:", 2000),
    ],
)
def test_how_long_it_trains(loop: str, steps: int) -> None:
    text = ROWS.replace("for i in range(1, 100 + 1):", loop)
    text = text.replace("{x: xs, y: ys})", "{x: xs, y: ys})\n            i += 1")
    assert f"max_steps: int | None = {steps}\n" in written(text)


def test_the_sum_of_a_loss_that_is_no_number_is_minimized() -> None:
    """As TensorFlow does it, and not their mean."""
    mean = "tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))"
    assert "return loss\n" in written(ROWS)
    found = written(ROWS.replace(mean, mean[len("tf.reduce_mean(") : -1]))
    assert "return tf.reduce_sum(loss)\n" in found
