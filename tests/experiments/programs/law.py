"""The law of epochs in one process, with drawn data, orders and ends; prints how many were tried.

What is drawn is the same each time, so what fails, fails for everybody.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat import tf, tf1
from compat.datasets import Batches
from experiments import run
from experiments.training.inputs import passes
from experiments.training.recording import seen
from experiments.training.recording.tally import Tally

sys.path.append(str(Path(__file__).parent))
counted: Any = __import__("counted")

RUNTIME = sys.argv[1]
TRIED = {"streams": 0, "resumed": 0, "runs": 0}
SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) >= 3)


def drawn(number: int, **what: Any) -> Any:
    """Returns a decorator: a property is tried with so many draws."""
    bounds = settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return lambda function: bounds(given(**what)(function))


def stream(first: int, size: int, batch_size: int, hides: bool) -> Any:
    """Returns batches of numbers, whose own number may be hidden from TensorFlow."""
    dataset = tf.data.Dataset.range(first, first + size).batch(batch_size)
    return dataset.filter(lambda x: tf.size(x) > 0) if hides else dataset


@contextlib.contextmanager
def opened(*datasets: Any) -> Iterator[list[Iterator[Any]]]:
    """Yields an iterator over the elements of each dataset, which functions make in a graph."""

    def values(session: Any, following: Any) -> Iterator[Any]:
        with contextlib.suppress(tf1.errors.OutOfRangeError):
            while True:
                yield session.run(following)

    with tf1.Graph().as_default(), tf1.Session() as session:
        iterators = [tf1.data.make_initializable_iterator(make()) for make in datasets]
        session.run([iterator.initializer for iterator in iterators])
        yield [values(session, iterator.get_next()) for iterator in iterators]


@drawn(
    60,
    size=st.integers(0, 9),
    hides=st.booleans(),
    epochs=st.integers(1, 3),
    used=st.integers(0, 30),
)
def test_a_stream_goes_on_behind_what_was_used(
    size: int, hides: bool, epochs: int, used: int
) -> None:
    def left() -> Any:
        return passes(stream(0, size, 1, hides), epochs, tf.constant(used, tf.int64))

    with opened(left) as (batches,):
        assert [int(number) for (number,) in batches] == (list(range(size)) * epochs)[used:]
    TRIED["streams"] += 1


def in_order(workers: list[Iterator[Any]], order: list[int]) -> Iterator[tuple[int, Any]]:
    """Yields workers, in the order that was drawn and then in turn, each with its next batch."""
    waiting = [*enumerate(workers)]
    for turn in itertools.chain(order, itertools.cycle(range(3))):
        if not waiting:
            return
        worker, batches = waiting[turn % len(waiting)]
        batch = next(batches, None)
        if batch is None:
            waiting.remove((worker, batches))
        else:
            yield worker, batch


@drawn(
    50,
    sizes=SIZES,
    batch_size=st.integers(1, 3),
    hides=st.booleans(),
    epochs=st.integers(1, 2),
    coordinated=st.booleans(),
    order=st.lists(st.integers(0, 2), max_size=30),
    saved=st.integers(1, 12),
    late=st.integers(0, 3),
    killed=st.integers(0, 30),
)
def test_a_resumed_run_repeats_what_came_late(
    sizes: list[int], batch_size: int, hides: bool, epochs: int, coordinated: bool,
    order: list[int], saved: int, late: int, killed: int,
) -> None:  # fmt: skip
    """Updates come in any order, and some `late`: while a checkpoint is being written."""
    names = [f"worker {i}" for i in range(len(sizes))]
    firsts = [sum(sizes[:i]) for i in range(len(sizes))]
    kept, repeated, used = np.zeros(sum(sizes), int), 0, None
    with tempfile.TemporaryDirectory() as logdir:
        Path(logdir, "checkpoint").write_text('model_checkpoint_path: "model.ckpt-5"\n')
        Path(logdir, "model.ckpt-5.index").touch()
        for dies_at in [killed, 0] if killed else [0]:
            # A coordinator counts for all; else each worker has a tally, and tells the chief.
            tallies = [Tally(names, None if coordinated else name, batch_size) for name in names]
            for tally in tallies:
                tally.resume(seen.read(logdir, 5, names) or {})
            chief, counts, taken = tallies[0], kept.copy(), [0] * len(sizes)

            def left(worker: int, tallies: list[Tally] = tallies) -> Any:
                tally = tallies[0 if coordinated else worker]
                data = stream(firsts[worker], sizes[worker], batch_size, hides)
                return passes(data, epochs, tf.constant(tally.batches(worker), tf.int64))

            with opened(*(functools.partial(left, i) for i in range(len(sizes)))) as workers:
                for made, (worker, batch) in enumerate(in_order(workers, order), 1):
                    counts[batch] += 1
                    taken[worker] += len(batch)
                    values = {"examples_seen": taken[worker]}
                    tallies[0 if coordinated else worker].add(
                        worker if coordinated else None, 1, values
                    )
                    for name, tally in [] if coordinated else zip(names[1:], tallies[1:]):
                        chief.take(name, tally.seen().get(name))
                    if dies_at and made == saved:
                        used = chief.seen()
                    if dies_at and used is not None and made == saved + late:
                        seen.write(logdir, f"{logdir}/model.ckpt-5", used)
                        kept = counts.copy()
                        repeated = int(chief.examples()["examples_seen"]) - sum(
                            n for _, n in used.values()
                        )
                    if made == dies_at:
                        break
    assert counts.sum() - epochs * sum(sizes) == repeated
    assert epochs <= counts.min() <= counts.max() <= 2 * epochs
    expected = {
        name: (epochs * -(-size // batch_size), epochs * size)
        for name, size in zip(names, sizes)
        if size
    }
    assert {name: both for name, both in chief.seen().items() if both[0]} == expected
    assert chief.examples()["examples_seen"] == epochs * sum(sizes)
    TRIED["resumed"] += 1


class KilledError(BaseException):
    """Ends a run in no order."""


class Counted(counted.Counted):  # type: ignore[misc]
    def on_step(self, run: Any, values: Any) -> None:
        if 0 < self.settings.dies_at <= run.step:
            raise KilledError


@drawn(
    10,
    size=st.integers(3, 12),
    batch_size=st.integers(1, 3),
    kind=st.sampled_from(["known", "hides", "arrays"]),
    epochs=st.integers(1, 2),
    every=st.integers(1, 5),
    killed=st.integers(0, 15),
)
def test_a_run_counts_each_example(
    size: int, batch_size: int, kind: str, epochs: int, every: int, killed: int
) -> None:
    """Whole runs, without a cluster."""
    given = {"hides": kind == "hides", "arrays": kind == "arrays", "epochs": epochs}
    given.update(batch_size=batch_size, checkpoint_every=every, steps_per_loop=1, seed=1)
    with tempfile.TemporaryDirectory() as logdir:
        for dies_at in [killed, 0] if killed else [0]:
            place = {"strategy": "local", "runtime": RUNTIME, "logdir": logdir}
            with contextlib.suppress(KilledError):
                run(Counted, sizes=str(size), dies_at=dies_at, **place, **given)
        counts = tf.train.load_checkpoint(logdir).get_tensor("counts")
    expected = np.full(size, epochs)
    if kind == "arrays":
        drawn_indices = Batches(size, batch_size, seed=1).next(epochs * (size // batch_size))
        expected = np.bincount(drawn_indices.ravel(), minlength=size)
    assert counts.tolist() == expected.tolist()
    TRIED["runs"] += 1


if __name__ == "__main__":
    test_a_run_counts_each_example()  # First: it says how TensorFlow is to run.
    test_a_stream_goes_on_behind_what_was_used()
    test_a_resumed_run_repeats_what_came_late()
    print("TRIED " + json.dumps(TRIED))
