"""The data that an experiment trains and is evaluated on: named arrays, or streams of `tf.data`."""

from __future__ import annotations

import difflib
import functools
import hashlib
import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence

import numpy as np

from compat import UserError, tf, tf1
from compat.datasets import Batches

Arrays = Dict[str, np.ndarray]
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Data:
    """The splits of a data set; each is a dict of arrays by name, or a stream.

    The arrays of a split have the same first dimension, the examples. A step receives a dict of
    batches with the same names. Each worker holds all arrays, and only the indices of a batch are
    sent to it. A stream is a function of (worker, number of workers) that returns a
    `tf.data.Dataset`. Its elements are the batches, of any structure of tensors, also sparse or
    ragged ones.

    Attributes:
      train: the split to train on.
      validation: the split by which settings and checkpoints are chosen, or None.
      test: the split that is evaluated once, at the end, or None.
      name: the name of the data set, for the record.
      source: where the data come from, for the record.
      checksum: a checksum of the data, in hex; for arrays it is computed if none is given.
    """

    train: Any
    validation: Any = None
    test: Any = None
    name: str = ""
    source: str = ""
    checksum: str = ""

    def __post_init__(self) -> None:
        for name in SPLITS:
            found = getattr(self, name)
            if isinstance(found, Mapping):
                object.__setattr__(self, name, _arrays(f"split {name!r}", found))
            elif callable(found) and not isinstance(found, type):
                object.__setattr__(self, name, _stream(name, found))
            elif found is not None:
                raise UserError(
                    f"split {name!r} of data() is {_kind(found)}; give a dict of arrays by name, "
                    "as in {'x': x, 'y': y}, or a function of (worker, number of workers) that "
                    "returns a tf.data.Dataset"
                )
        if self.train is None:
            raise UserError("data() has no 'train' split; return one, as in {'train': {'x': x}}")
        if not self.checksum:
            object.__setattr__(self, "checksum", _checksum(self))

    @property
    def sizes(self) -> dict[str, int]:
        """The number of examples of each split that is not a stream."""
        splits = {name: getattr(self, name) for name in SPLITS}
        return {name: examples(found) for name, found in splits.items() if isinstance(found, dict)}

    @property
    def streams(self) -> bool:
        """Whether the training split is a stream."""
        return callable(self.train)


def data_of(found: Any) -> Data:
    """Converts what `Experiment.data` returned to `Data`; raises a `UserError` if it cannot be."""
    if isinstance(found, Data):
        return found
    if not isinstance(found, Mapping):
        remedy = "return a dict of splits, as split({'x': x, 'y': y}) does, or experiments.Data"
        raise UserError(f"data() returned {_kind(found)}; {remedy}")
    for name in found:
        if name not in SPLITS:
            meant = difflib.get_close_matches(str(name), SPLITS, n=1, cutoff=0.4)
            remedy = f"call it {meant[0]!r}" if meant else f"give some of {', '.join(SPLITS)}"
            raise UserError(f"data() returned a split {name!r}, which is unknown; {remedy}")
    return Data(**{"train": None, **found})


def split(
    arrays: Mapping[str, Any], validation: float = 0.1, test: float = 0.1, seed: int = 1
) -> dict[str, Arrays]:
    """Splits examples at random into training, validation and test examples.

    Args:
      arrays: arrays by name, with the same first dimension.
      validation: share of the examples for validation, in [0, 1).
      test: share of the examples for the test, in [0, 1).
      seed: seed of the random order; the same seed gives the same splits on all machines.

    Returns:
      The three splits, for `Experiment.data`; an empty one is left out.

    Raises:
      UserError: the shares leave nothing to train on, or the arrays differ in length.
    """
    if not isinstance(arrays, Mapping):
        raise UserError(
            f"split() was given {_kind(arrays)}; name the arrays: split({{'x': x, 'y': y}})"
        )
    whole = _arrays("split()", arrays)
    number = examples(whole)
    counts = {"validation": round(number * validation), "test": round(number * test)}
    if min(counts.values()) < 0 or sum(counts.values()) >= number:
        raise UserError(
            f"split() with validation={validation} and test={test} leaves none of {number} "
            "examples to train on; give smaller shares"
        )
    order = np.random.RandomState(seed).permutation(number)
    parts = zip((*counts, "train"), np.split(order, np.cumsum([*counts.values()])))
    return {
        name: {key: array[chosen] for key, array in whole.items()}
        for name, chosen in parts
        if len(chosen)
    }


def examples(arrays: Arrays) -> int:
    """Returns the number of examples."""
    return len(next(iter(arrays.values())))


def specs(arrays: Arrays) -> list[Any]:
    """Returns a `tf.TensorSpec` of a batch of any size for each array, sorted by name."""
    return [
        tf.TensorSpec([None, *arrays[name].shape[1:]], tf.as_dtype(arrays[name].dtype), name)
        for name in sorted(arrays)
    ]


def batch_specs(data: Data) -> Any:
    """Returns the specs of a training batch: a dict for arrays, an `element_spec` for a stream."""
    if not data.streams:
        return dict(zip(sorted(data.train), specs(data.train)))
    with tf1.Graph().as_default():
        return data.train(0, 1).element_spec


def chunks(arrays: Arrays, size: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields the arrays, sorted by name, `size` examples at a time."""
    for start in range(0, examples(arrays), size):
        yield tuple(arrays[name][start : start + size] for name in sorted(arrays))


class Batched:
    """Draws the indices of the examples for each call of a step.

    If one process makes the calls of several trainers, their batches take turns.

    Args:
      number: the number of examples.
      settings: the settings of the experiment.
      trainers: the indices of the trainers.
      limit: the number of updates after which there are no more batches; None for no end.
    """

    def __init__(
        self, number: int, settings: Any, trainers: Sequence[int], limit: int | None = None
    ) -> None:
        self._period = settings.communication_period
        self._left = limit
        self._batches = [
            Batches(number, settings.batch_size, settings.seed, trainer) for trainer in trainers
        ]

    def skip(self, updates: int) -> None:
        """Skips the batches of a number of `updates`, which an earlier process has made."""
        self._left = None if self._left is None else max(0, self._left - updates)
        for batches in self._batches:
            batches.skip(updates)

    def next(self, updates: int) -> np.ndarray:
        """Returns the indices of the next batches, a row for each call of the step.

        There are enough calls for `updates` updates of each trainer. A call makes
        `communication_period` updates, so the last one may make more than are needed. There are no
        rows once `limit` is reached.
        """
        updates = updates if self._left is None else min(updates, self._left)
        calls = -(-updates // self._period)
        self._left = None if self._left is None else max(0, self._left - calls * self._period)
        drawn = [batches.next(calls * self._period) for batches in self._batches]
        size = drawn[0].shape[1]
        shape = [self._period, size] if self._period > 1 else [size]
        return np.stack(drawn, axis=1).reshape(-1, *shape)


def sizes(stream: Callable[[int, int], Any], num_workers: int) -> list[int] | None:
    """Returns the number of batches of each worker in a pass over a stream, None if unknown.

    TensorFlow knows it for a dataset that is made from arrays, or that was given the number by
    `tf.data.experimental.assert_cardinality`.
    """
    numbers = []
    for worker in range(num_workers):
        with tf1.Graph().as_default(), tf1.Session() as session:
            found = session.run(tf.data.experimental.cardinality(stream(worker, num_workers)))
        numbers.append(int(found))
    return None if min(numbers) < 0 else numbers


def passes(dataset: Any, epochs: int | None, used: Any) -> Any:
    """Returns a dataset of the batches that are left of `epochs` passes over `dataset`.

    Args:
      dataset: a dataset of batches.
      epochs: the number of passes; None to repeat it without end, whatever was used.
      used: the number of batches that were used before, an int64 scalar.
    """
    if epochs is None:
        return dataset.repeat()
    size = tf.data.experimental.cardinality(dataset)
    # If the length of a pass is known, whole passes are left out instead of read and skipped.
    whole = tf.where(size > 0, used // tf.maximum(size, 1), tf.zeros_like(size))
    left = tf.maximum(epochs - whole, 0)
    return dataset.repeat(left).skip(used - whole * tf.maximum(size, 0))


def _kind(found: Any) -> str:
    """Returns the type of a value in words, such as "a tuple"; "None" for None."""
    return "None" if found is None else f"a {type(found).__name__}"


def _stream(name: str, found: Callable[[int, int], Any]) -> Callable[[int, int], Any]:
    """Returns the function of a split, changed to raise a `UserError` if it returns no dataset."""
    what = f"split {name!r} of data() is a function"

    @functools.wraps(found)
    def stream(worker: int, workers: int) -> Any:
        try:
            inspect.signature(found).bind(worker, workers)
        except TypeError:
            own = inspect.signature(found)
            raise UserError(f"{what} of {own}; give it the arguments (worker, workers)") from None
        dataset = found(worker, workers)
        if not isinstance(dataset, tf.data.Dataset):
            raise UserError(
                f"{what} that returned {_kind(dataset)}; return a tf.data.Dataset of batches"
            )
        return dataset

    return stream


def _arrays(whose: str, found: Mapping[str, Any]) -> Arrays:
    """Converts arrays by name; raises a `UserError` if they are not the arrays of a split.

    All arrays must have the same number of examples, at least one. Scalars and arrays of Python
    objects are refused. `whose` names the arrays in errors.
    """
    arrays = {str(name): np.asarray(array) for name, array in found.items()}
    for name, array in arrays.items():
        if array.ndim == 0 or array.dtype == object:
            kind = "a scalar" if array.ndim == 0 else "of Python objects"
            raise UserError(
                f"array {name!r} of {whose} is {kind}; give an array of numbers or strings "
                "whose first dimension is the examples"
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if not lengths or len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise UserError(
            f"the arrays of {whose} have {lengths or 'no'} examples; give each the same "
            "number, at least one"
        )
    return arrays


def _checksum(data: Data) -> str:
    """Returns the SHA-256 of all arrays; "" if a split is a stream, which is not read here."""
    digest = hashlib.sha256()
    for name in SPLITS:
        found = getattr(data, name)
        if callable(found):
            return ""
        for key in sorted(found or {}):
            array = np.ascontiguousarray(found[key])
            digest.update(f"{name} {key} {array.dtype.str} {array.shape}".encode())
            digest.update(array.tobytes() if array.dtype.hasobject else memoryview(array).cast("B"))
    return digest.hexdigest()
