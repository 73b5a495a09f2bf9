"""`python -m compat migrate --to=experiment` of scripts whose work is in functions and modules."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import compat
from compat.errors import UserError
from compat.scripts.migrating.command import main
from compat.scripts.migrating.experiment import writing

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
PACKAGES = str(Path(compat.__file__).resolve().parents[1])  # The copy under test, not the folder.
DEADLINE_SECS = 300
HEAD = "import compat.v1 as tf\nimport numpy as np\n"
NET = """
x = tf.placeholder(tf.float32, [None, 4], name="x")
y = tf.placeholder(tf.float32, [None, 1], name="y")
w = tf.Variable(tf.zeros([4, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
"""
LOOP = """
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(20):
        batch = np.random.rand(8, 4)
        session.run(train, {x: batch, y: batch.sum(1, keepdims=True)})
"""
# As in TensorFlow's own tutorial with summaries.
SUMMARIES = """
from compat.v1.examples.tutorials.mnist import input_data

def main():
    mnist = input_data.read_data_sets(FLAGS.folder, one_hot=True)
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.float32, [None, 10])
    keep = tf.placeholder(tf.float32)
    logits = tf.layers.dense(tf.nn.dropout(x, keep), 10)
    loss = tf.losses.softmax_cross_entropy(y, logits)
    train = tf.train.AdamOptimizer().minimize(loss)

    def feed(training):
        if training or FLAGS.fake:
            xs, ys = mnist.train.next_batch(100)
            k = FLAGS.dropout
        else:
            xs, ys = mnist.test.images, mnist.test.labels
            k = 1.0
        return {x: xs, y: ys, keep: k}

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for i in range(50):
            if i % 10 == 0:
                print(session.run(loss, feed_dict=feed(False)))
            else:
                session.run(train, feed_dict=feed(True))

tf.flags.DEFINE_string("folder", "data", "Where it is.")
tf.flags.DEFINE_float("dropout", 0.9, "Keep probability.")
tf.flags.DEFINE_boolean("fake", False, "Fake data.")
FLAGS = tf.flags.FLAGS
main()
"""
MODEL = '''
import math
import tensorflow as tf
import sizes

RATE = 0.9


def inference(x):
    w = tf.get_variable("w", [sizes.INPUTS, 8], initializer=tf.constant_initializer(0.1))
    v = tf.get_variable("v", [8, 1], initializer=tf.constant_initializer(1 / math.sqrt(8)))
    return tf.mul(tf.matmul(tf.nn.relu(tf.matmul(x, w)), v), 1.0)


def train(loss, learning_rate=0.1):
    """Makes the update."""
    step = tf.Variable(0, trainable=False)
    rate = tf.train.exponential_decay(learning_rate, step, 10, 0.5)
    optimizer = tf.train.MomentumOptimizer(rate, RATE)
    return optimizer.minimize(loss, global_step=step)
'''
SCRIPT = """
import numpy as np
import tensorflow as tf
from model import inference, train


def inputs(size):
    x = tf.placeholder(tf.float32, [None, size], name="x")
    return x, tf.placeholder(tf.float32, [None, 1], name="y")


x, y = inputs(4)
output = inference(x)
loss = tf.reduce_mean(tf.square(output - y))
train_op = train(loss, 0.01)


def fill(size, inputs, targets):
    batch = np.random.rand(size, 4)
    feed = {inputs: batch, targets: batch.sum(1, keepdims=True)}
    return feed


def main():
    with tf.Session() as sess:
        sess.run(tf.initialize_all_variables())
        for step in range(20):
            feed = fill(16, x, y)
            _, value = sess.run([train_op, loss], feed_dict=feed)


if __name__ == "__main__":
    main()
"""


def written(text: str) -> str:
    """Returns the new program without the comments at its end, and without blank lines."""
    made = writing.migrate("old.py", HEAD + text).text.partition("# compat 1")[0]
    return re.sub(r"\n\s*\n", "\n", made)


def test_a_function_that_feeds_is_followed() -> None:
    """Also into the branch that its argument takes, and to what it feeds in an evaluation."""
    made = written(SUMMARIES)
    assert "        mnist = input_data.read_data_sets(FLAGS.folder, one_hot=True)\n" in made
    assert '                "y": np.asarray(part.labels, "float32"),\n' in made
    assert "tf.constant(FLAGS.dropout if training else 1.0, tf.float32), [])\n" in made
    assert "        batch_size: int = 100\n" in made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that imports a module of TensorFlow 0.x, which imports one without TensorFlow."""
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "sizes.py").write_text("INPUTS = 4\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_module_that_trains_is_followed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is migrated beside the new program, which imports what it still needs of it."""
    assert main(["--to=experiment", "train.py"]) == 1
    assert "\nwrote model_v1.py\n" in capsys.readouterr().out
    names = ["model.py", "model_v1.py", "sizes.py", "train.py", "train_experiment.py"]
    assert sorted(path.name for path in project.iterdir()) == names
    new = (project / "model_v1.py").read_text(encoding="utf-8")
    assert "import compat.v1 as tf\nimport sizes\n" in new
    assert "tf.multiply(" in new
    made = (project / "train_experiment.py").read_text(encoding="utf-8")
    assert "from model_v1 import inference, train\nfrom model_v1 import RATE\n" in made
    assert (
        made[made.index("    def optimizer") : made.index("if __name__")].strip()
        == """\
def optimizer(self, step):
        rate = tf.train.exponential_decay(0.01, step, 10, 0.5)
        optimizer = tf.train.MomentumOptimizer(rate, RATE)
        return optimizer"""
    )
    # As it is, a module is written once; a changed one is left.
    assert main(["--to=compat", "train.py"]) == 0
    (project / "model_v1.py").write_text(new + "RATE = 0.8\n", encoding="utf-8")
    os.remove("train_compat.py")
    with pytest.raises(UserError, match="model_v1.py exists, and is not what model.py becomes"):
        main(["--to=compat", "train.py"])
    assert not (project / "train_compat.py").exists()
    main(["--to=experiment", "--output=new/train.py", "train.py"])
    assert sorted(os.listdir("new")) == ["model_v1.py", "sizes.py", "train.py"]


@pytest.mark.slow
@pytest.mark.parametrize("to", ["compat", "experiment"])
def test_it_is_proven(project: Path, to: str) -> None:
    env = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "compat", "migrate", f"--to={to}", "--prove", "train.py"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE_SECS)
    assert re.search("equal: 20 losses of 20 training calls; .* difference 0,", done.stdout), done
