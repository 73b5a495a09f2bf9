"""`python -m compat migrate` of scripts that make several objects of a class."""

from __future__ import annotations

import ast
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.steps import conditions, rewriting
from compat.scripts.migrating.steps.pieces import separated
from compat.scripts.rules.program import Program
from compat.scripts.source import conversion

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# As the language models of 2016: one network is trained, another one with its variables is not.
SHARED = """\
import numpy as np
import compat.v1 as tf

class Model(object):
    width = 3

    def __init__(self, training, rate, keep=None):
        def layer(inputs):
            weights = tf.get_variable("w", [Model.width, 1], initializer=tf.ones_initializer())
            return tf.matmul(inputs, weights)

        self.x = tf.placeholder(tf.float32, [None, self.width])
        self._cost = cost = tf.reduce_mean(tf.square(layer(self.x) - 1.0)) * rate
        if not training:
            self.other = keep.cost
            return
        self.train = tf.train.GradientDescentOptimizer(0.1).minimize(cost)

    @property
    def cost(self):
        return self._cost

def run_epoch(session, model, rows, update=None):
    total = 0.0
    for row in rows:
        if update is not None:
            session.run(update, {model.x: [row]})
        total += session.run(model.cost, {model.x: [row]})
    return total / len(rows)

def main():
    rows = np.arange(12.0).reshape(4, 3) / 12
    with tf.Graph().as_default():
        with tf.variable_scope("model"):
            m = Model(True, 1.0)
        with tf.variable_scope("model", reuse=True):
            valid = Model(training=False, rate=2.0, keep=m)
        sv = tf.train.Supervisor()
        with sv.managed_session() as session:
            for epoch in range(3):
                trained = run_epoch(session, m, rows, update=m.train)
                print("%.4f %.4f" % (trained, run_epoch(session, valid, rows[:2])))
            print("%.4f" % session.run(valid.other, {m.x: rows}))

main()
"""


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_objects_that_share_variables_train_as_before(
    run_step: Callable[[str, str], Any], runtime: str
) -> None:
    new = rewritten(SHARED)
    assert "class Model" not in new and "def build(m_x, valid_x):" in new
    assert new.count("tf.train.GradientDescentOptimizer") == 1 and "compat 1:" not in new
    outs = [run_step(SHARED, "legacy").out, run_step(new, runtime).out]
    assert outs[0].splitlines()[-4:] == outs[1].splitlines()[-4:], outs


# Of 2017: a graph of the object's own, a statement beside that which makes it, and semicolons.
BESIDE = """\
import compat.v1 as tf

class Graph():
    def __init__(self, training=True):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, [None]); self.n = 2.0;  # Two.
            self.loss = tf.reduce_sum(self.x * tf.Variable(self.n));
            if training:
                self.train = tf.train.GradientDescentOptimizer(0.1).minimize(self.loss)

g = Graph("train"); print("made")
sv = tf.train.Supervisor(graph=g.graph)
with sv.managed_session() as session:
    for i in range(3):
        session.run(g.train, {g.x: [1, 2]});
    print("%.2f" % session.run(g.loss, {g.x: [1, 2]}))
"""


def test_an_object_is_made_beside_another_statement(
    run_step: Callable[[str, str], Any], runtime: str
) -> None:
    new = rewritten(BESIDE)
    assert "sv = compat.Supervisor()\n" in new and ";" not in new
    outs = [run_step(BESIDE, "legacy").out, run_step(new, runtime).out]
    assert [out.split()[-1:] for out in outs] == [["3.30"]] * 2 and "made" in outs[1]


def test_lines_are_separated_where_they_begin_with_a_statement() -> None:
    text = 'a = 1; b = ";"  ;c = 3;\nif a: d = 4; e = 5\n'
    text += 'for i in "ab":\n    f = 6; # g;\n    print(f) ;\n'
    program = Program(conversion.Source("old.py", text, False), marked=True)
    assert separated(program).text == (
        'a = 1\nb = ";"\nc = 3\nif a: d = 4; e = 5\nfor i in "ab":\n    f = 6  # g;\n    print(f)\n'
    )


# The state of several cells: a session returns as many arrays.
STATE = """\
import compat.v1 as tf

x = tf.placeholder(tf.float32, [])
state = (tf.constant(1.0), tf.Variable(2.0))
loss = tf.square(state[1] * x - state[0])
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
sess = tf.Session()
sess.run(tf.global_variables_initializer())
values = sess.run(state)
for value, tensor in zip(values, state):
    print("%.2f" % value)
sess.run(train, {x: 0.5})
print("%.2f" % sess.run(loss, {x: 0.5}))
"""


def test_what_is_iterated_is_no_value_of_a_step(run_step: Callable[[str, str], Any]) -> None:
    new = rewritten(STATE)
    assert "sess.run(state)" in new and '"state"' not in new
    outs = [run_step(text, "legacy").out.split()[-3:] for text in (STATE, new)]
    assert outs[0] == outs[1] and len(outs[0]) == 3


# As of asynchronous actor-critic: one object has the variables, another trains them with its own.
SHARING = """\
import compat.v1 as tf

class Net(object):
    def __init__(self, scope, optimizer=None, shared=None):
        if scope == "shared":
            with tf.variable_scope(scope):
                self.x = tf.placeholder(tf.float32, [None, 2], "x")
                self.w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        else:
            with tf.variable_scope(scope):
                self.x = tf.placeholder(tf.float32, [None, 2], "x")
                self.w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
                self.loss = tf.reduce_sum(tf.square(tf.matmul(self.x, self.w) - 1.0))
            gradients = tf.gradients(self.loss, [self.w])
            self.pull = [mine.assign(its) for mine, its in zip([self.w], [shared.w])]
            self.train = optimizer.apply_gradients(zip(gradients, [shared.w]))

def main(index):
    with tf.device("/cpu:0"):
        optimizer = tf.train.GradientDescentOptimizer(0.25)
        shared = Net("shared")
    net = Net("net_%d" % index, optimizer, shared)
    sv = tf.train.Supervisor()
    with sv.managed_session() as session:
        for step in range(3):
            print("%.4f" % session.run(net.pull)[0][1, 0])
            session.run(net.train, {net.x: [[1.0, 0.5]]})

main(0)
"""


def test_a_condition_on_the_beginning_of_a_text_is_decided(
    run_step: Callable[[str, str], Any], runtime: str
) -> None:
    new = rewritten(SHARING)
    assert 'tf.TensorSpec([None, 2], tf.float32, scope + "/x")' in new and "compat 1:" not in new
    outs = [run_step(SHARING, "legacy").out, run_step(new, runtime).out]
    assert outs[0].splitlines()[-3:] == outs[1].splitlines()[-3:] != ["1.0000"] * 3, outs


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ('"net_%d" % index == "shared"', False),
        ('"shared" != "net_{}".format(index)', True),
        ('f"net_{index}" == "net"', False),
        ('"net" + index == "net"', None),
        ('"net_%d" % index == "net_0"', None),
        ('"net_%d" % index == "new" + index', False),
        ('"%d" % index == "net"', None),
        ('"net_%d" % index == 1', None),
    ],
)
def test_texts_of_which_the_beginning_is_known(text: str, truth: bool | None) -> None:
    assert conditions.truth(ast.parse(text, mode="eval").body, {}) is truth


# As programs of some size have it: an object that runs what another one has built.
TRAINER = """\
import numpy as np
import compat.v1 as tf

class Model(object):
    def __init__(self, size):
        self.x = tf.placeholder(tf.float32, [None, size])
        self.y = tf.placeholder(tf.float32, [None, 1])
        output = tf.matmul(self.x, tf.Variable(tf.ones([size, 1])))
        self.loss = tf.reduce_mean(tf.square(output - self.y))
        self.train = tf.train.GradientDescentOptimizer(0.125).minimize(self.loss)

    def feed(self, rows):
        return {self.x: rows, self.y: rows.sum(1, keepdims=True) / 2}

class Trainer(object):
    def __init__(self, model, steps, size=4):
        self.size, self.steps = size, steps
        self.count = 0
        self.model = model

    def step(self, rows):
        self.count += 1
        model = self.model
        _, loss = self.session.run([self.model.train, self.model.loss], self.model.feed(rows))
        return loss

    def fit(self):
        sv = tf.train.Supervisor()
        with sv.managed_session() as self.session:
            for i in range(self.steps):
                loss = self.step(np.eye(self.size))
            print("%d %.4f" % (self.count, loss))

def run(model, steps):
    Trainer(model, steps=steps).fit()

run(Model(4), 5)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("run(Model(4), 5)", "model = Model(4)\nrun(model, 5)"),
        ("self.model = model", "self.model = Model(size)"),
    ],
)
def test_an_object_of_another_class_has_the_model(
    run_step: Callable[[str, str], Any], runtime: str, old: str, new: str
) -> None:
    text = TRAINER.replace("        model = self.model\n", "").replace(old, new)
    if "Model(size)" in new:
        text = text.replace("model, steps", "steps").replace("Model(4), ", "")
    found = rewritten(text)
    assert "class " not in found and "compat 1:" not in found
    outs = [run_step(text, "legacy").out, run_step(found, runtime).out]
    assert outs[0].split()[-2:] == outs[1].split()[-2:] and outs[0].split()[-2] == "5", outs


def test_an_object_that_has_a_model_and_passes_it_on_is_refused() -> None:
    why = "class Model cannot be written .* since its object is not assigned to a name"
    with pytest.raises(UserError, match=why):
        rewritten(TRAINER.replace("model = self.model\n", "print(self.model)\n"))
