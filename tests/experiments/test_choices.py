"""Choices of how an update is made: precision, parts of a batch, AdamW, schedules; callbacks."""

from __future__ import annotations

import math
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

from compat import UserError, tf, tf1
from experiments import Experiment, Settings
from experiments.launching import devices
from experiments.recommender import Recommender
from experiments.training.recording.callback import Callback, Callbacks
from experiments.training.updates import optimizers, rate, step
from experiments.training.updates.accumulation import in_parts, mean_gradients
from experiments.training.updates.update import Updates, updates_of
from tests.experiments.conftest import Training

PROGRAM = Path(__file__).parent / "programs" / "products.py"
CLUSTER = ["--strategy=ps", "--num_ps=1", "--num_workers=2"]
_DEADLINE_SECS = 400.0
# Without rounding 256.5; each 1 + 2**-10 is 1 in bfloat16.
_EXACT, _ROUNDED = 256.5001, 256.0

Start = Callable[..., Training]


@pytest.fixture
def start_products(tmp_path: Path, start_program: Any, empty_store: Path) -> Iterator[Start]:
    """Starts the program in a folder of its own."""
    started: list[Training] = []

    def begin(*flags: str) -> Training:
        for file in (PROGRAM, empty_store):
            shutil.copy(str(file), str(tmp_path))
        argv = [sys.executable, PROGRAM.name, *flags, "--logdir=logs", "--traceback"]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(Training(argv, tmp_path, tmp_path / "logs", env, start_program))
        return started[-1]

    yield begin
    for training in started:
        training.end()


def bfloat16_is_refused() -> bool:
    """Whether this machine or this TensorFlow makes no products in bfloat16."""
    try:
        devices.check_precision("bfloat16")
    except UserError:
        return True
    return False


def product_of(training: Training) -> float:
    """Returns the product of the first update that the callbacks have seen."""
    assert training.wait(_DEADLINE_SECS).code == 0, training.out + training.err
    return float(re.findall(r"'product': ([\d.]+)", training.out)[0])


@pytest.mark.once
@pytest.mark.long
def test_callbacks_are_called_in_order(start_products: Start, runtime: str) -> None:
    training = start_products(f"--runtime={runtime}").wait(_DEADLINE_SECS)
    said = [" ".join(line.split()[:2]) for line in training.out.splitlines()]
    known = ("experiment", "first", "second")
    assert [line for line in said if line.startswith(known)] == [
        "experiment starts",
        *("first starts", "second starts", "first sees", "second sees"),
        *("first ends", "second ends"),
    ], training.out + training.err


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("place", [[], CLUSTER, [*CLUSTER, "--sync"]], ids=["alone", "ps", "sync"])
def test_bfloat16_rounds_products(start_products: Start, runtime: str, place: list[str]) -> None:
    if bfloat16_is_refused():
        pytest.skip("this machine makes no products in bfloat16")
    found = start_products(*place, "--precision=bfloat16", f"--runtime={runtime}")
    assert product_of(found) == _ROUNDED


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("place", [[], CLUSTER], ids=["alone", "ps"])
def test_parts_of_a_batch_give_its_values(
    start_products: Start, runtime: str, place: list[str]
) -> None:
    found = start_products(*place, "--accumulate=4", f"--runtime={runtime}")
    assert product_of(found) == _EXACT


def test_bfloat16_is_refused_where_it_would_do_nothing(tmp_path: Path) -> None:
    processor = tmp_path / "cpuinfo"
    processor.write_text("flags : fpu avx512f avx512_vnni\n", "utf-8")
    devices.check_precision("float32", str(processor), {})
    with pytest.raises(UserError, match="--precision=bfloat16 needs "):
        devices.check_precision("bfloat16", str(processor), {})


@pytest.fixture
def graph() -> Iterator[Any]:
    """A graph, also where eager execution is enabled."""
    with tf1.Graph().as_default() as made:
        yield made


def run(values: Any) -> Any:
    """Returns values of the default graph."""
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        return session.run(values)


class Rows(Experiment):
    """A table of which a batch reads a few rows, and a weight."""

    def build(self) -> None:
        self.table = tf1.Variable(np.arange(4, dtype=np.float32), name="table")
        self.weight = tf1.Variable(np.float32(2.0), name="weight")

    def loss(self, batch: Any, training: bool) -> Any:
        errors = tf.gather(self.table, batch["rows"]) * self.weight - batch["y"]
        return tf.reduce_mean(errors**2), {"mean": tf.reduce_mean(batch["y"])}


def gradients(accumulate: int, batch: Any) -> tuple[float, float, np.ndarray, float]:
    """Returns the loss of a batch, the mean of its labels, and the gradients of both variables."""
    experiment = Rows(Settings(accumulate=accumulate, batch_size=12))
    experiment.build()
    loss, scalars, pairs, _ = step.loss_and_gradients(
        experiment,
        batch,
        lambda losses: Updates(
            updates_of(tf1.train.GradientDescentOptimizer(0.1)), losses, tf1.trainable_variables()
        ),
    )
    (table, _), (weight, _) = pairs
    assert isinstance(table, tf.IndexedSlices)
    loss, mean, table, weight = run([loss, scalars["mean"], tf.convert_to_tensor(table), weight])
    return loss, mean, table, weight


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("accumulate", [2, 3, 12])
def test_gradients_of_parts_are_those_of_the_batch(accumulate: int, known: bool) -> None:
    found = []
    for number in (1, accumulate):
        with tf1.Graph().as_default():
            rows, y = np.int32([0, 3, 3, 1] * 3), np.arange(12, dtype=np.float32)
            size = [12] if known else [None]
            batch = {
                "rows": tf1.placeholder_with_default(rows, size),
                "y": tf1.placeholder_with_default(y, size),
            }
            found.append(gradients(number, batch))
    for whole, parts in zip(*found):
        np.testing.assert_allclose(parts, whole, rtol=1e-5)


def test_a_small_batch_of_a_stream_leaves_parts_empty() -> None:
    found = []
    for number in (1, 4):
        with tf1.Graph().as_default():
            batch = {
                "rows": tf1.placeholder_with_default(np.int32([0, 3]), [None]),
                "y": tf1.placeholder_with_default(np.float32([5, 6]), [None]),
            }
            found.append(gradients(number, batch))
    for whole, parts in zip(*found):
        np.testing.assert_allclose(parts, whole, rtol=1e-5)


def test_parts_of_sparse_and_ragged_batches(graph: Any) -> None:
    sparse = tf.SparseTensor([[0, 1], [1, 0], [3, 2]], [1.0, 2.0, 3.0], [4, 3])
    ragged = tf.RaggedTensor.from_row_lengths([1, 2, 3, 4], [1, 0, 2, 1])
    (_, first), (share, second) = in_parts({"s": sparse, "r": ragged, "one": tf.constant(7)}, 2)
    assert [v.tolist() for v in run([tf.sparse.to_dense(p["s"]) for p in (first, second)])] == [
        [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0], [0.0, 0.0, 3.0]],
    ]
    assert run([second["r"].values, second["one"], share])[0].tolist() == [2, 3, 4]
    assert run([second["one"], share]) == [7, 0.5]
    assert mean_gradients([{None: [(1, 2)]}], [1.0]) == [[(1, 2)]]


def test_parts_that_differ_in_size_are_refused() -> None:
    with pytest.raises(UserError, match="--accumulate=3 parts of --batch_size=100 would differ"):
        Settings(accumulate=3)


def test_adamw_takes_a_share_times_the_rate(graph: Any) -> None:
    weight = tf1.Variable(np.float32(8.0), use_resource=True)
    optimizer = optimizers.create("adamw", 0.1, 0.5)
    update = optimizer.apply_gradients([(tf.constant(1.0), weight)])
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(update)
        # Adam's first update is the rate, whatever the gradient.
        assert session.run(weight) == pytest.approx(8.0 - 0.1 * 0.5 * 8.0 - 0.1, abs=1e-5)
    # Decay is not in the gradient as well.
    experiment = Experiment(Settings(optimizer="adamw", weight_decay=0.5))
    ((gradient, _),) = experiment.gradients([(tf.constant(1.0), weight)])
    assert run(gradient) == 1.0


def test_a_cosine_falls_after_a_warm_up(graph: Any) -> None:
    settings = Settings(schedule="cosine", warmup_steps=4, learning_rate=0.1)
    rates = run([rate.scheduled(settings, tf.constant(i, tf.int64), 12) for i in range(14)])
    rising = [0.025, 0.05, 0.075, 0.1]
    falling = [0.05 * (1 + math.cos(math.pi * i / 8)) for i in range(9)]
    assert rates == pytest.approx([*rising, *falling, 0.0], abs=1e-6)


def test_a_constant_rate_is_a_number() -> None:
    assert rate.scheduled(Settings(), None, None) == 0.001


@pytest.mark.parametrize(
    ("given", "total", "sentence"),
    [
        ({"schedule": "cosine"}, None, "--schedule=cosine falls to 0 at the last update, and the "),
        ({"warmup_steps": 9}, 9, "--warmup_steps=9 is not less than the 9 updates of the run"),
    ],
)
def test_schedules_without_an_end_are_refused(
    graph: Any, given: Any, total: int | None, sentence: str
) -> None:
    with pytest.raises(UserError) as caught:
        rate.scheduled(Settings(**given), tf.constant(0), total)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({}, "callbacks() returned dict; return a list"),
        ([Callback], "callbacks() has Callback, which is no Callback; return Callback()"),
        ([print], "callbacks() has a builtin_function_or_method, which is no Callback"),
    ],
)
def test_callbacks_of_another_kind_are_refused(found: Any, sentence: str) -> None:
    class Own(Experiment):
        def callbacks(self) -> Any:
            return found

    with pytest.raises(UserError) as caught:
        Callbacks(Own(Settings()))
    assert str(caught.value).startswith(sentence)


def test_an_experiment_that_casts_by_itself_is_not_rewritten() -> None:
    assert devices.products(Experiment.Settings(precision="bfloat16")) == "bfloat16"
    assert devices.products(Recommender.Settings(precision="bfloat16")) == "float32"
