"""`python -m compat migrate` of model classes that have a base class of the script's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.classes import bases
from compat.scripts.migrating.command import main
from compat.scripts.migrating.steps import rewriting
from compat.scripts.rules.program import Program
from compat.scripts.source import conversion

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
NETWORKS = """\
class Network(object):
    \"\"\"What all networks have.\"\"\"
    rate = 0.1
    width = 3

    def __init__(self, size, name="network"):
        self.size, self.name = size, name

    def prepare(self, scale):
        # What is fed.
        self.y = tf.placeholder(tf.float32, [None, 1])
        self.loss = tf.reduce_mean(tf.square(self.output - self.y)) * scale
        self.train = tf.train.GradientDescentOptimizer(self.rate).minimize(self.loss)

    def weight(self, shape):
        return tf.Variable(tf.ones(shape))

    def describe(self):
        raise NotImplementedError()

class Plain(Network):
    def __init__(self, size):
        Network.__init__(self, size)
        self.x = tf.placeholder(tf.float32, [None, size])
        self.output = tf.matmul(self.x, self.weight([size, 1]))

class Deep(Network):
    rate = 0.05

    def __init__(self, size):
        super(Deep, self).__init__(size, name="deep")
        self.x = tf.placeholder(tf.float32, [None, size])
        hidden = tf.matmul(self.x, self.weight([self.size, self.width]))
        self.output = tf.matmul(hidden, self.weight([self.width, 1]))

    def weight(self, shape):
        return Network.weight(
            self, shape) * 0.5

    def describe(self):
        return self.name
"""
SCRIPT = """\
import numpy as np
import compat.v1 as tf

NETWORKS
def fit(model):
    model.prepare(2.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(20):
            feed = {model.x: np.eye(4), model.y: np.ones([4, 1])}
            _, loss = sess.run([model.train, model.loss], feed)
        print("%s: %.4f" % (model.describe(), loss))

fit(Deep(4))
"""
OLD = SCRIPT.replace("NETWORKS", NETWORKS)


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_a_class_gets_what_its_base_has() -> None:
    program = Program(conversion.Source("old.py", OLD, False), marked=True)
    found = bases.flattened(program, bool).text
    assert "Network(" not in found.replace("class Deep(object)", "") and "class Plain" not in found
    assert 'self.init_of_network(size, name="deep")\n' in found
    assert "return self.weight_of_network(shape) * 0.5\n" in found
    assert "    def weight_of_network(self, shape):\n        return tf.Variable(" in found
    assert found.count("def describe") == found.count("rate = ") == found.count("width = ") == 1
    assert "    def prepare(self, scale):\n        # What is fed.\n" in found


def test_it_trains_as_before(run_step: Callable[[str, str], Any], runtime: str) -> None:
    new = rewritten(OLD)
    assert "class " not in new and "compat 1:" not in new
    outs = [run_step(OLD, "legacy").out, run_step(new, runtime).out]
    assert outs[0].split("\n")[-2:] == outs[1].split("\n")[-2:] and "deep: 0." in outs[1], outs


def test_the_base_may_be_in_a_module(tmp_path: Path) -> None:
    (tmp_path / "networks.py").write_text(f"import tensorflow as tf\n\n{NETWORKS}")
    text = SCRIPT.replace("NETWORKS", "from networks import Deep\n").replace(
        "compat.v1", "tensorflow"
    )
    (tmp_path / "old.py").write_text(text)
    assert main(["--to=compat", str(tmp_path / "old.py")]) == 0
    new = (tmp_path / "old_compat.py").read_text()
    assert "networks" not in new and "optimizer" not in new and "tf.placeholder" not in new
    assert new.count("tf.Variable(tf.ones(") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("super(Deep, self).__init__(size", "super(Network, self).__init__(size"),
        ("super(Deep, self).__init__(size", "begin = super(Deep, self).__init__\n        (size"),
        ("self, shape) * 0.5", "other, shape) * 0.5"),
        ("self.size, self.name = size, name", "self.__size = size"),
        ("    width = 3\n", "    for width in (2, 3): pass\n"),
        ("class Network(object)", "class Network(tf.Module)"),
    ],
)
def test_what_it_cannot_say_is_refused(old: str, new: str) -> None:
    assert old in OLD
    with pytest.raises(UserError, match="has a base class or a decorator; write in it what that"):
        rewritten(OLD.replace(old, new).replace('(size, name="deep")', "(size)"))


def test_an_object_that_is_passed_on_is_refused_where_it_is_made() -> None:
    text = OLD.replace("        print(", "        print(model, ")
    with pytest.raises(UserError, match="class Deep .* since its object is not assigned to a name"):
        rewritten(text)
