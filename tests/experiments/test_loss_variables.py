"""Variables made in `loss`, by `tf.Variable` or `get_variable`, are made once."""

from __future__ import annotations

from typing import Any

import pytest

from compat import tf1
from experiments import Experiment
from experiments.training.updates import step


class Line(Experiment):
    """A line through two variables of each kind, mixed."""

    def loss(self, batch: Any, training: bool) -> Any:
        first = tf1.Variable(2.0)
        with tf1.variable_scope("named"):
            second = tf1.get_variable("slope", [], initializer=tf1.ones_initializer())
        third = tf1.Variable(3.0, name="last")
        return tf1.reduce_mean(first * second * batch["x"] + third)


@pytest.mark.once
def test_an_evaluation_finds_what_training_has_made() -> None:
    with tf1.Graph().as_default():
        experiment, batch = Line(Line.Settings()), {"x": tf1.constant([1.0, 2.0])}
        step.losses_of(experiment, batch)
        made = tf1.global_variables()
        assert [v.op.name for v in made] == ["Variable", "named/slope", "last"]
        values = step.evaluate(experiment, batch)
        assert [id(v) for v in tf1.global_variables()] == [id(v) for v in made]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(made[2].assign(7.0))
            assert session.run(values["loss"]) == 10.0
