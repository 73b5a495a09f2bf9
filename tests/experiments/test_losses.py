"""Several losses: each updates variables of its own, as often as it says."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

from compat import UserError, tf, tf1
from experiments import Update
from experiments.training.updates.update import Updates, updates_of
from tests.experiments.conftest import Training

PROGRAM = Path(__file__).parent / "programs" / "gan.py"
CLUSTER = ["--strategy=ps", "--num_ps=1", "--num_workers=2"]
_DEADLINE_SECS = 400.0

Start = Callable[..., Training]


@pytest.fixture
def start_gan(tmp_path: Path, start_program: Any, empty_store: Path) -> Iterator[Start]:
    """Starts the program in a folder of its own."""
    started: list[Training] = []

    def begin(*flags: str) -> Training:
        for file in (PROGRAM, empty_store):
            shutil.copy(str(file), str(tmp_path))
        argv = [sys.executable, PROGRAM.name, *flags, "--logdir=logs"]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(Training(argv, tmp_path, tmp_path / "logs", env, start_program))
        return started[-1]

    yield begin
    for training in started:
        training.end()


def found_by(training: Training) -> dict[str, float]:
    """Returns how many updates the program has counted, and its last evaluation."""
    assert training.wait(_DEADLINE_SECS).code == 0, training.out + training.err
    (line,) = [line for line in training.out.splitlines() if '{"step"' in line]
    values: dict[str, float] = json.loads(line[line.index("{") :])
    return values


@pytest.mark.once
@pytest.mark.long
def test_each_loss_is_updated_by_its_period(start_gan: Start, runtime: str) -> None:
    found = found_by(start_gan(f"--runtime={runtime}"))
    counted = [found[name] for name in ("step", "critic", "generator")]
    assert counted == [500, 500, 100]
    # Both losses learn: the generator begins 2.3 from the ring's middle.
    assert found["distance"] < 1.6


@pytest.mark.once
@pytest.mark.long
def test_workers_share_the_count_of_a_period(start_gan: Start, runtime: str) -> None:
    found = found_by(start_gan(*CLUSTER, f"--runtime={runtime}"))
    # Two that count at the same moment may both see the later number, or write the same one.
    assert found["critic"] == pytest.approx(found["step"], rel=0.05)
    assert found["generator"] == pytest.approx(found["step"] / 5, rel=0.2)
    assert found["distance"] < 1.6


@pytest.mark.once
@pytest.mark.slow
def test_replicas_make_each_update_together(start_gan: Start, runtime: str) -> None:
    found = found_by(start_gan(*CLUSTER, "--sync", f"--runtime={runtime}"))
    assert [found["critic"], found["generator"]] == [found["step"], found["step"] // 5]


@pytest.mark.once
@pytest.mark.slow
def test_workers_with_updates_of_their_own(start_gan: Start, runtime: str) -> None:
    found = found_by(start_gan(*CLUSTER, "--communication_period=5", f"--runtime={runtime}"))
    assert found["distance"] < 1.6


@pytest.mark.once
@pytest.mark.slow
def test_names_of_one_side_only_are_refused(start_gan: Start) -> None:
    refused = start_gan("--names=one").wait()
    assert refused.code == 2
    assert refused.err.startswith(
        "error: loss() returned losses by name ('generator', 'critic'), and optimizer() none for "
        "each; return a dict of the same names from optimizer()"
    )


@pytest.fixture
def variables() -> Iterator[list[Any]]:
    """Three variables of a graph, also where eager execution is enabled."""
    with tf1.Graph().as_default():
        yield [tf1.Variable(np.float32(value), name=name) for value, name in enumerate("abc")]


def sgd() -> Any:
    """An optimizer that subtracts the gradient."""
    return tf1.train.GradientDescentOptimizer(1.0)


def test_gradients_are_those_of_the_own_loss(variables: list[Any]) -> None:
    a, b, c = variables
    # Each loss depends on the other's variable, and the rest is for None, wherever it is named.
    losses = {"first": a * b * 5.0 + c, "second": a * b * 7.0 + c}
    parts = updates_of({"first": (sgd(), None), "second": Update(sgd(), [b])})
    updates = Updates(parts, losses, variables)
    pairs = [pair for own in updates.gradients().values() for pair in own]
    update = updates.optimizer.apply_gradients(pairs)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(update)
        assert session.run(variables) == [0.0 - 5.0, 1.0 - 0.0, 2.0 - 1.0]


def test_a_period_applies_each_nth_gradient(variables: list[Any]) -> None:
    a = variables[0]
    parts = updates_of([Update(sgd(), [a], every=3), (sgd(), None)])
    updates = Updates(parts, {None: a + variables[1] + variables[2]}, variables)
    step = tf1.train.get_or_create_global_step()
    update = updates.optimizer.apply_gradients(updates.gradients()[None], step)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        found = [session.run(update) or session.run([a, step]) for _ in range(7)]
    assert [value for value, _ in found] == [0.0, 0.0, -1.0, -1.0, -1.0, -2.0, -2.0]
    assert [number for _, number in found] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"x": 1, "y": 2}, "optimizer() returned optimizers by name ('x', 'y'), and loss() one"),
        ([(1, "a"), (2, "ab")], "two parts of optimizer() have the variable a:0; leave it in one"),
        ([(1, "ab")], "optimizer() has no part for c:0; end it with (optimizer, None)"),
        ([(1, "ab", 0)], "an Update of optimizer() has every=0; give a whole number of steps"),
        ([("adam", None)], "optimizer() returned 'adam'; return one of TensorFlow 1.x"),
    ],
)
def test_parts_that_contradict_are_refused(variables: list[Any], parts: Any, sentence: str) -> None:
    by_name = {variable.op.name: variable for variable in variables}

    def made(part: Any) -> Any:
        if not isinstance(part, tuple):
            return sgd()
        optimizer, names, *every = part
        mine = names and [by_name[name] for name in names]
        return (optimizer if optimizer == "adam" else sgd(), mine, *every)

    given = (
        {k: made(v) for k, v in parts.items()} if isinstance(parts, dict) else [*map(made, parts)]
    )
    with pytest.raises(UserError) as caught:
        Updates(updates_of(given), {None: tf.add_n(variables)}, variables).gradients()
    assert str(caught.value).startswith(sentence)
