"""The order of the examples: the tutorials' law, for ever, and after a restart."""

from __future__ import annotations

from typing import Iterator

import numpy as np
import pytest

from compat.datasets import Batches
from compat.errors import UserError

SIZES = [(10, 3), (10, 5), (10, 10), (7, 1), (1, 1), (100, 99)]


def tutorial_batches(num_examples: int, batch_size: int, seed: int) -> Iterator[list[int]]:
    """What `DataSet.next_batch` of TensorFlow 1.x's tutorials returns, on the data 0, 1, 2 ..."""
    random = np.random.RandomState(seed)
    data = np.arange(num_examples)
    start, epochs_completed = 0, 0
    while True:
        if epochs_completed == 0 and start == 0:
            permutation = np.arange(num_examples)
            random.shuffle(permutation)
            data = data[permutation]
        if start + batch_size > num_examples:
            epochs_completed += 1
            rest = data[start:]
            permutation = np.arange(num_examples)
            random.shuffle(permutation)
            data = data[permutation]
            start = batch_size - len(rest)
            yield np.concatenate([rest, data[:start]]).tolist()
        else:
            yield data[start : start + batch_size].tolist()
            start += batch_size


@pytest.mark.parametrize(("num_examples", "batch_size"), [*SIZES, (5000, 128)])
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_the_stream_is_the_tutorials(num_examples: int, batch_size: int, seed: int) -> None:
    reference = tutorial_batches(num_examples, batch_size, seed)
    batches = Batches(num_examples, batch_size, seed)
    for n in (1, 0, 2, 50):
        indices = batches.next(n)
        assert indices.dtype == np.int32
        assert indices.shape == (n, batch_size)
        assert indices.tolist() == [next(reference) for _ in range(n)]


def test_the_stream_is_the_same_on_all_numpy_releases() -> None:
    assert Batches(10, 4, seed=1).next(4).tolist() == [
        [2, 9, 6, 4],
        [0, 3, 1, 7],
        [8, 5, 5, 3],
        [4, 2, 8, 0],
    ]


@pytest.mark.parametrize(("num_examples", "batch_size"), SIZES)
@pytest.mark.parametrize("drawn", [0, 1, 5])
def test_skipping_is_drawing(num_examples: int, batch_size: int, drawn: int) -> None:
    for k in [*range(25), 1000]:
        batches = Batches(num_examples, batch_size, seed=3)
        resumed = Batches(num_examples, batch_size, seed=3)
        batches.next(drawn)
        resumed.next(drawn)
        batches.next(k)
        resumed.skip(k)
        assert resumed.next(5).tolist() == batches.next(5).tolist()


def test_an_epoch_in_batches() -> None:
    assert Batches(55000, 100, seed=0).batches_per_epoch == 550
    assert Batches(199, 100, seed=0).batches_per_epoch == 1


@pytest.mark.parametrize("batch_size", [-1, 0, 11])
def test_a_batch_that_cannot_be_filled_is_refused(batch_size: int) -> None:
    sentence = f"^batch size {batch_size}: expected 1 to 10, .*; give another --batch_size$"
    with pytest.raises(UserError, match=sentence):
        Batches(10, batch_size, seed=0)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UserError, match=f"^seed {seed}: expected 0 to 4294967295; give another"):
        Batches(10, 1, seed)


def test_the_stream_has_no_way_back() -> None:
    batches = Batches(10, 1, seed=0)
    with pytest.raises(UserError, match="^-1 batches: expected 0 or more"):
        batches.skip(-1)
    with pytest.raises(UserError, match="^-2 batches: expected 0 or more"):
        batches.next(-2)
