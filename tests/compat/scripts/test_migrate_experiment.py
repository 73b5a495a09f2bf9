"""`python -m compat migrate --to=experiment`, and the guide from `check` to there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from compat.errors import UserError
from compat.scripts.checking import command as check
from compat.scripts.migrating.command import main
from compat.scripts.migrating.experiment import flags, writing
from experiments import Settings
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "old-script.md").read_text(encoding="utf-8")
OLD, NEW = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
STORY = re.findall(r"```sh\npython -m compat (.*?)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
HEAD = "import compat.v1 as tf\n"
READER = '''
from compat.v1.examples.tutorials.mnist import input_data
import argparse

width = 28 * 28

def layer(x):
    """One layer."""
    return tf.matmul(x, tf.Variable(tf.zeros([width, 10]))) * FLAGS.scale

def main(_):
    mnist = input_data.read_data_sets(FLAGS.folder, one_hot=True)
    with tf.device("/job:worker"):
        with tf.name_scope("input"):
            x = tf.placeholder(tf.float32, [None, width])
            y = tf.placeholder(tf.float32, [None, 10], name="y")
            p = tf.placeholder(tf.float32)
        step = tf.train.get_or_create_global_step()
        logits = tf.nn.dropout(layer(x), p)
        loss = tf.reduce_mean(tf.square(logits - y))
        tf.summary.scalar("loss", loss)
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        with tf.name_scope("train"):
            rate = tf.train.exponential_decay(FLAGS.learning_rate, step, 100, 0.9)
            train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    with tf.train.MonitoredTrainingSession() as session:
        for epoch in range(3):
            for i in range(mnist.train.num_examples // FLAGS.batch_size):
                xs, ys = mnist.train.next_batch(FLAGS.batch_size)
                session.run([train, loss], {x: xs, y: ys, p: 0.5})
        print(session.run(accuracy, {x: mnist.test.images, y: mnist.test.labels, p: 1.0}))

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="data", help="Where it is.")
    parser.add_argument("--scale", type=float, default=1, help="Of logits.")
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--batch_size", type=int, default=50)
    parser.add_argument("--unused", default="")
    FLAGS, _ = parser.parse_known_args()
    tf.app.run()
'''


def written(text: str, name: str = "old-script.py") -> str:
    return writing.migrate(name, HEAD + text).text


def masked(text: str) -> str:
    """Returns an output without what differs from run to run, and from release to release."""
    return re.sub(r"\d+\.\d[\d.]*|difference \S+,", "N", text)


def test_what_reads_sources_does_what_the_guide_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(OLD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shown = [(c.split(), text) for c, text in STORY if c.split()[0] in ("check", "migrate")]
    for (name, *argv), text in shown:
        assert {"check": check.main, "migrate": main}[name](argv) == 0
        assert capsys.readouterr().out == text
    assert len(shown) == 4
    assert Path("train_experiment.py").read_text(encoding="utf-8") == NEW
    with pytest.raises(UserError, match="is an experiment already"):
        main(["--to=experiment", "train_experiment.py"])
    with pytest.raises(UserError, match="is a program on compat.step"):
        main(["--to=experiment", "train_compat.py"])
    main(["--to=experiment", "--diff", "train.py"])
    assert "+class Train(Experiment):\n" in capsys.readouterr().out


@pytest.mark.slow
def test_what_runs_does_what_the_guide_shows(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OLD, encoding="utf-8")
    for command, text in STORY:
        said = run_python("-m", "compat", *command.split(), cwd=tmp_path).stdout
        assert masked(text) in masked(said), command


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [["local"], ["ps", "--num_ps=1", "--num_workers=2"]])
def test_it_trains_alone_and_as_a_cluster(tmp_path: Path, runtime: str, cluster: list[str]) -> None:
    (tmp_path / "train.py").write_text(NEW, encoding="utf-8")
    flags = [f"--strategy={cluster[0]}", *cluster[1:], f"--runtime={runtime}"]
    said = run_python("train.py", *flags, "--logdir=run", cwd=tmp_path).stdout
    (loss,) = re.findall(r"Final Loss: (\S+)", said)
    # From about 4, which is the mean of the square of what is predicted.
    assert float(loss) < 1


def test_a_script_of_the_tutorials_becomes_an_experiment() -> None:
    text = written(READER)
    new = text[: text.index("# compat note")]
    assert (
        new
        == '''\
from __future__ import annotations

from dataclasses import dataclass
import compat.v1 as tf
import numpy as np
from experiments import Experiment, run, setting


FLAGS = None  # The settings, for functions.

width = 28 * 28


def layer(x):
    """One layer."""
    return tf.matmul(x, tf.Variable(tf.zeros([width, 10]))) * FLAGS.scale


class OldScript(Experiment):
    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
        scale: float = setting(1.0, "Of logits.")
        folder: str = setting("data", "Where it is.")
        learning_rate: float = 0.1
        epochs: int = 3
        batch_size: int = 50

    def data(self):
        global FLAGS
        FLAGS = self.settings
        from compat.v1.examples.tutorials.mnist import input_data

        mnist = input_data.read_data_sets(FLAGS.folder, one_hot=True)

        def arrays(part):
            return {
                "x": np.asarray(part.images, "float32"),
                "y": np.asarray(part.labels, "float32"),
            }

        return {
            "train": arrays(mnist.train),
            "validation": arrays(mnist.validation),
            "test": arrays(mnist.test),
        }

    def loss(self, batch, training):
        global FLAGS
        FLAGS = self.settings
        with tf.name_scope("input"):
            x = tf.placeholder_with_default(batch["x"], [None, width])
            y = tf.placeholder_with_default(batch["y"], [None, 10], name="y")
            p = tf.placeholder_with_default(tf.constant(0.5 if training else 1.0, tf.float32), [])
        logits = tf.nn.dropout(layer(x), p)
        loss = tf.reduce_mean(tf.square(logits - y))
        tf.summary.scalar("loss", loss)
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        return loss, {"accuracy": accuracy}

    def learning_rate(self, step):
        global FLAGS
        FLAGS = self.settings
        rate = tf.train.exponential_decay(FLAGS.learning_rate, step, 100, 0.9)
        return rate

    def optimizer(self, step):
        global FLAGS
        FLAGS = self.settings
        return tf.train.AdamOptimizer(self.learning_rate(step))


if __name__ == "__main__":
    run(OldScript)


'''
    )  # noqa: E501
    assert 'add_argument("--unused"' in text
    assert 'add_argument("--scale"' not in text


def test_an_element_of_arrays_is_a_batch() -> None:
    text = """
import numpy as np
xs = np.random.rand(9)
ys = 2 * xs
x = tf.placeholder("float")
y = tf.placeholder(tf.float32, [])
loss = tf.square(x * tf.Variable(1.0) - y)
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    step = 0
    while step < 90:
        for a, b in zip(xs, ys):
            session.run(train, feed_dict={x: a, y: b})
            step += 1
"""
    found = written(text)
    body = found[found.index("    def data") : found.index("    def optimizer")]
    assert (
        body
        == """\
    def data(self):
        np.random.seed(self.settings.seed)  # The same data in all tasks.
        xs = np.random.rand(9)
        ys = 2 * xs
        train = {
            "x": np.asarray(xs, "float32"),
            "y": np.asarray(ys, "float32"),
        }
        return {"train": train}

    def loss(self, batch, training):
        x = tf.placeholder_with_default(batch["x"][0], batch["x"][0].shape)
        y = tf.placeholder_with_default(batch["y"][0], [])
        loss = tf.square(x * tf.Variable(1.0) - y)
        return loss

"""
    )
    assert "max_steps: int | None = 90\n" in found
    assert "batch_size: int = 1\n" in found


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{x: xs, y: ys, p: 0.5}", "feed(xs)", "its batches are fed by a function"),
        (", p: 0.5}", "}", "it trains without feeding p"),
        ("FLAGS.scale", "FLAGS.task_index", "what it builds depends on the flag task_index"),
    ],
)
def test_what_it_refuses(old: str, new: str, why: str) -> None:
    text = READER.replace(old, new, 1)
    assert text != READER
    rest = "use --to=compat or --to=v1, or write it plainly"
    with pytest.raises(UserError, match=f"cannot become an Experiment, since {why}; {rest}"):
        written(text)


def test_known_settings_are_those_of_experiments() -> None:
    import dataclasses

    known: dict[str, Any] = {field.name: str(field.type) for field in dataclasses.fields(Settings)}
    assert {name: known.get(name) for name in flags.INHERITED} == flags.INHERITED
    assert {*known, "preset", "config", "job_name", "task_index"} >= flags.TAKEN
    ast.parse(NEW)


def test_a_float_used_as_a_size_is_whole() -> None:
    """As argparse asks the type of no default, which is a number already."""
    text = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=float, default=8)
parser.add_argument("--scale", type=float, default=2)
parser.add_argument("--goal", type=float, default=1.0)
args = parser.parse_args()
x = tf.placeholder(tf.float32, [None, 4])
weights = tf.Variable(tf.zeros([4, args.hidden]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) * args.scale - [args.goal]))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(9):
        session.run(train, feed_dict={x: np.ones([3, 4])})
"""
    found = written("import numpy as np\n" + text)
    assert 'hidden: int = setting(8, "hidden.")' in found
    assert 'scale: float = setting(2.0, "scale.")' in found
    assert 'goal: float = setting(1.0, "goal.")' in found  # In a list, and no size.
