"""`python -m compat migrate` of scripts whose model is a class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.classes import dissolving
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting
from compat.scripts.rules.program import Program
from compat.scripts.source import conversion

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# A class of 2017: helpers, a property, a method that runs the session, a constant.
OLD = """\
import numpy as np
import compat.v1 as tf

class Model(object):
    \"\"\"Of one layer.\"\"\"
    size = 4

    def __init__(self, rate=0.1):
        super(Model, self).__init__()
        self.x = tf.placeholder(tf.float32, [None, self.size])
        self.y_ = tf.placeholder(tf.float32, [None, 1])
        self._build()
        self.train_op = tf.train.GradientDescentOptimizer(rate).minimize(self.loss)

    def _weight(self, shape):
        initial = tf.zeros(shape)
        return tf.Variable(initial)

    def _build(self):
        # The only layer.
        output = tf.matmul(self.x, self._weight([self.size, 1])) + self._weight([1])
        self._loss = tf.reduce_mean(tf.square(output - self.y_))

    @property
    def loss(self):
        return self._loss

    def step(self, session, x, y, training=True):
        feed = {self.x: x, self.y_: y}
        if training:
            session.run(self.train_op, feed)
        return session.run(self.loss, feed)

def fit(session, model, steps):
    for i in range(steps):
        x = np.random.rand(8, 4)
        model.step(session, x, x.sum(1, keepdims=True))

def main():
    np.random.seed(1)
    with tf.device(None):
        model = Model()
    sv = tf.train.Supervisor()
    with sv.managed_session() as session:
        fit(session, model, 50)
        print("%.3f" % model.step(session, [[1, 2, 3, 4]], [[10]], False))

main()
"""


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_its_attributes_are_variables_and_its_methods_are_written_out() -> None:
    found = rewritten(OLD)
    assert (
        found[found.index("def main") :]
        == """\
def main():
    np.random.seed(1)
    size = 4
    def build(model_x, y_):
        # The only layer.
        initial = tf.zeros([size, 1])
        weight = tf.Variable(initial)
        initial_2 = tf.zeros([1])
        weight_2 = tf.Variable(initial_2)
        output = tf.matmul(model_x, weight) + weight_2
        loss = tf.reduce_mean(tf.square(output - y_))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return {
            "loss": loss,
            "train_op": train_op,
        }

    with compat.device(None):
        build = compat.step(build, [tf.TensorSpec([None, size], tf.float32), \
tf.TensorSpec([None, 1], tf.float32)])
        train = build.select("loss")
        train_2 = build.select("train_op")
    sv = compat.Supervisor()
    with sv.managed_session() as session:
        for i in range(50):
            x = np.random.rand(8, 4)
            y = x.sum(1, keepdims=True)
            feed = (x, y)
            session.run(train_2, *feed)
            session.run(train, *feed)
        feed_2 = ([[1, 2, 3, 4]], [[10]])
        step = session.run(train, *feed_2).get("loss")
        print("%.3f" % step)

main()
"""
    )


def test_it_trains_on_either_runtime(run_step: Callable[[str, str], Any], runtime: str) -> None:
    ran = run_step(rewritten(OLD), runtime)
    assert (ran.code, ran.out.split()[-1:]) == (0, ["6.413"]), ran.out


def test_conditions_on_constants_are_decided() -> None:
    """Such are in the graph: what is made in a branch cannot be fetched."""
    made = "        self.train_op = "
    text = OLD.replace("rate=0.1", 'rate=0.1, kind="sgd", training=True')
    first = "        self.kind = kind\n        self.on = training\n"
    text = text.replace("        super(", f"{first}        super(", 1)
    branches = '        if self.kind == "adam":\n            raise ValueError\n'
    branches += f"        elif self.on:\n    {made}"
    found = rewritten(text.replace(made, branches))
    expected = "        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)\n"
    assert expected in found and '"train_op": train_op' in found and "ValueError" not in found


# What an object changes, and when, with names that are taken elsewhere.
STATE = """\
import compat.v1 as tf

class State:
    def __init__(self, n, sizes):
        self.x = tf.placeholder(tf.float32)
        self.n = n
        sizes.append(4)
        self.sizes = sizes
        self.last = sizes[-1]
        self.calls = []
        for i in range(3):
            self.calls.append(self.late(i))
        self.a, self.b = 1, 2

    def late(self, i):
        j = i * 2
        return lambda k: (k, i, j)

    def next(self):
        self.n += 1
        return self.n

    def bump(self, n, by=None):
        if by is not None:
            self.n += by
        return n

    def first(self, least):
        for i in range(9):
            if self.bump(i, 1) > least:
                return i
        return None

    def counted(self):
        for i in range(2):
            yield i, self.next()

    def swap(self):
        self.a, self.b = self.b, self.a

    @property
    def total(self):
        return self.n + len(self.sizes)

def fill(state, count):
    i = 0
    while i < count:
        i += state.next()
    return i

def main():
    i, j, n = 5, 6, 7
    state = State(n, [1, 2])
    print(state.next(), state.next(), state.n, state.next() + state.n)
    print(state.bump(state.n, 5), state.bump(state.n), state.n)
    print([f(1) for f in state.calls], state.sizes, state.last)
    print(fill(state, 9))
    total = fill(state, 30)
    print(total, state.total)
    print(state.first(2), list(state.counted()), state.total)
    while state.next() < 99:
        state.swap()
    if state.total > 3:
        state.swap()
    print(state.a, state.b, i, j, n, list(map(state.bump, [1, 2])))

main()
"""


def test_it_computes_what_the_object_did(run_step: Callable[[str, str], Any]) -> None:
    program = Program(conversion.Source("old.py", STATE, False), marked=True)
    new = dissolving.dissolved(program, "tf").text
    assert "class State" not in new and "state." not in new
    outs = [run_step(text, "legacy").out for text in (STATE, new)]
    assert outs[0] == outs[1] and len(outs[0].splitlines()) == 7


DEFAULT = """\
import compat.v1 as tf
with tf.Graph().as_default():
    sess = tf.Session()
    with sess.as_default():
        x = tf.placeholder(tf.float32, [None])
        loss = tf.reduce_sum(x * tf.Variable(1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        sess.run(tf.global_variables_initializer())
        print(sess.run([train, loss], {x: [2, 3]})[1])
"""


def test_a_session_that_is_the_default_is_that_of_the_supervisor(
    run_step: Callable[[str, str], Any], runtime: str
) -> None:
    for text in (
        DEFAULT,
        DEFAULT.replace(
            "sess = tf.Session()\n    with sess.as_default():", "with tf.Session() as sess:"
        ),
    ):
        found = rewritten(text)
        assert "as_default" not in found
        assert run_step(found, runtime).out.split()[-1:] == ["5.0"]


REFUSED = {
    "2 objects of it are made, which share what this makes": (
        r"size = 4((.|\n)*)model = Model\(\)",
        r"size = [4]\1model = Model(); other = Model()",
    ),
    "no object of it is made here": ("model = Model()", "model = 1"),
    "it is used for more than to make an object": ("    sv =", "    print(Model)\n    sv ="),
    "its object is not assigned to a name": ("model = Model", "[model] = Model"),
    "model is assigned again": ("    sv =", "    model = 1\n    sv ="),
    "model is used for more than its attributes": ("    sv =", "    print(model)\n    sv ="),
    "self is used for more than its attributes": ("self._build\\(\\)", "print(self)"),
    "__dict__ of its object is used": ("self._build\\(\\)", "self.__dict__"),
    "its method loss is replaced": ("    sv =", "    model.loss = 1\n    sv ="),
    "its attribute missing is set nowhere": ("    sv =", "    print(model.missing)\n    sv ="),
    "it has a base class or a decorator": ("\\(object\\)", "(Base)"),
    "its method loss has a decorator": ("@property", "@lazy"),
    "its body has more than methods and constants": ("size = 4", "size = 4; size += 1"),
    "its method _build, which builds, returns in other places than its end": (
        "        # The",
        "        if self.x is None: return\n        # The",
    ),
    "its method _build, which builds, yields": (
        "        output =",
        "        yield 1\n        output =",
    ),
    "its method _weight, which builds, cannot be written where it is called, as in a condition": (
        "output = tf.matmul",
        "self._weight([1]) and tf.matmul",
    ),
}


@pytest.mark.parametrize("migrate", [rewriting.migrate, writing.migrate])
@pytest.mark.parametrize("why", REFUSED)
def test_what_it_refuses(why: str, migrate: Any) -> None:
    text = re.sub(*REFUSED[why], OLD, count=1)
    assert text != OLD
    said = f"the class Model cannot be written as plain statements, since {why}"
    with pytest.raises(UserError, match=re.escape(said)):
        migrate("old.py", text)


def test_the_page_has_such_a_sentence() -> None:
    page = Path(__file__).parents[3] / "docs" / "migrate-steps.md"
    (said,) = re.findall("since (its method .*), or write it", page.read_text(encoding="utf-8"))
    assert said.partition(";")[0] in REFUSED
