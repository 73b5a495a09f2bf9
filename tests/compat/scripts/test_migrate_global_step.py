"""`python -m compat migrate`: the variables that count steps."""

from __future__ import annotations

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
STEP = """
import numpy as np
import compat.v1 as tf

x = tf.placeholder(tf.float32, [None, 4])
w = tf.Variable(tf.zeros([4, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
step = tf.Variable(0)
train = tf.train.GradientDescentOptimizer(1 / (100 + step)).minimize(loss, global_step=step)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for i in range(30):
        session.run([train, loss], {x: np.ones([8, 4])})
"""


def test_a_step_is_one_without_saying_that_nothing_trains_it() -> None:
    made = writing.migrate("old.py", STEP).text.partition("# compat ")[0]
    assert "return (1 / (100 + step))" in made
    assert "tf.Variable(0)" not in made
    made = rewriting.migrate("old.py", STEP).text
    assert "step = compat.get_or_create_global_step()" in made
    with pytest.raises(UserError, match="since its step does not begin at 0"):
        writing.migrate("old.py", STEP.replace("Variable(0)", "Variable(7)"))
