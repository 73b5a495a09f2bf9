"""`--seed` decides the initial values of variables whose initializers have no seed of their own."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat import tf, tf1
from experiments import Experiment
from experiments.training import seeds
from experiments.training.updates import step
from tests.experiments.conftest import Training

PROGRAM = Path(__file__).parent / "programs" / "digits.py"


class Network(Experiment):
    """Variables whose initializers are left out, given as a class or without a seed, or seeded."""

    def build(self) -> None:
        self.early = tf1.get_variable("early", [2, 3])

    def loss(self, batch: Any, training: bool) -> Any:
        total = tf1.reduce_sum(self.early)
        for name, initializer in (
            ("default", None),
            ("class", tf1.truncated_normal_initializer),
            ("object", tf1.random_normal_initializer(0.0, 0.1)),
            ("seeded", tf1.random_uniform_initializer(-1.0, 1.0, seed=3)),
            ("zeros", tf1.zeros_initializer()),
            ("flat", Ones()),
        ):
            total += tf1.reduce_sum(tf1.get_variable(name, [2, 3], initializer=initializer))
        with tf1.variable_scope("own", custom_getter=shaped):
            total += tf1.reduce_sum(tf1.get_variable("unseeded", [2]))
        parts = tf1.get_variable("parts", [4, 3], partitioner=tf1.fixed_size_partitioner(2))
        return total + tf1.reduce_sum(tf1.layers.dense(batch["x"], 3)) + tf1.reduce_sum(parts)


class Ones:
    """An initializer of the experiment's own, which knows no seed."""

    seed = None

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return tf1.ones(shape, dtype)

    def get_config(self) -> dict[str, Any]:
        return {}


def shaped(getter: Any, name: str, shape: Any = None, **kwargs: Any) -> Any:
    """A getter of the experiment's own, which gives the shape by position."""
    return getter(name, shape, **kwargs)


def initial_values(seed: int, others: int) -> dict[str, np.ndarray]:
    """Returns them by name, in a graph that has some operations before."""
    with tf1.Graph().as_default():
        for _ in range(others):
            tf1.constant(1)
        experiment = Network(Network.Settings(seed=seed))
        with seeds.seeded_variables(seed):  # As programs do.
            experiment.build()
        step.losses_of(experiment, {"x": tf1.ones([1, 3])})
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            return {v.op.name: session.run(v) for v in tf1.global_variables()}


@pytest.mark.once
def test_initial_values_are_those_of_seed_and_name() -> None:
    one, again, other = initial_values(1, 0), initial_values(1, 5), initial_values(2, 0)
    parts = [one.pop(f"parts/part_{index}") for index in (0, 1)]
    assert one.pop("own/unseeded").shape == (2,)
    assert not np.array_equal(*parts)  # One seed for both would make them alike.
    for name, value in one.items():
        np.testing.assert_array_equal(value, again[name], err_msg=name)
        changes = name.rpartition("/")[2] not in ("seeded", "zeros", "flat", "bias")
        assert np.array_equal(value, other[name]) != changes, name
    assert not np.array_equal(one["default"], one["class"])


@pytest.mark.once
@pytest.mark.skipif(not hasattr(tf.keras, "version"), reason="Keras 2 draws by the graph's seed")
def test_layers_begin_with_the_same_values_on_both_runtimes(
    tmp_path: Path, start_program: Any, empty_store: Path
) -> None:
    layers = "tf.keras.layers.InputLayer([64]), tf.keras.layers.Dense(10)"
    text = PROGRAM.read_text().replace('batch["x"] @ self.w', 'self.model(batch["x"])')
    made = f"self.model = tf.keras.Sequential([{layers}])"
    text = re.sub("self.w = .*", made, text)
    (tmp_path / PROGRAM.name).write_text(text)
    (tmp_path / empty_store.name).write_bytes(empty_store.read_bytes())

    def losses(runtime: str, seed: int) -> list[str]:
        flags = [f"--runtime={runtime}", f"--seed={seed}", f"--logdir={runtime}-{seed}"]
        argv = [sys.executable, PROGRAM.name, *flags, "--system_metrics_every=0"]
        done = Training(argv, tmp_path, None, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program).wait()
        assert (done.code, done.err) == (0, "")
        return re.findall(r" Loss: (\S+),", done.out)

    found = losses("legacy", 4)
    assert len(found) == 3
    assert losses("modern", 4) == found
    assert losses("legacy", 5) != found


def test_python_goes_on_where_it_was() -> None:
    random.seed(7)
    expected = [random.random(), random.random()]
    random.seed(7)
    first = random.random()
    with seeds.seeded_layers(1):
        inside = random.random()
    assert [first, random.random()] == expected
    with seeds.seeded_layers(1):
        assert random.random() == inside
