"""What an experiment trains and is evaluated on: named arrays, or streams of `tf.data`."""

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
    """The splits of a data set, each of them named arrays or a stream.

    Named arrays have the same first dimension, the examples; a step is given a batch of each by the
    same name. They are kept on every worker, and only indices travel. A stream is a function of
    (worker, number of workers) that returns a `tf.data.Dataset`, whose elements are the batches: of
    any structure, of sparse or ragged tensors, too.

    Attributes:
      train: what the model is trained on.
      validation: what settings and checkpoints are chosen by, or None.
      test: what is evaluated once, at the end, or None.
      name: of the data set, for the record.
      source: where it comes from, for the record.
      checksum: of the data, in hex; of arrays it is computed where none is given.
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
    """Returns what `Experiment.data` has returned as `Data`."""
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
      arrays: by name, with the same first dimension.
      validation: share of the examples for validation, in [0, 1).
      test: share of the examples for the test, in [0, 1).
      seed: of the order; the same seed gives the same splits everywhere.

    Returns:
      The three splits, for `Experiment.data`; one without a share is left out.

    Raises:
      UserError: the shares leave nothing to train on, or the arrays do not match.
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
    """Returns the types of a training batch: of arrays a dict, of a stream those of its element."""
    if not data.streams:
        return dict(zip(sorted(data.train), specs(data.train)))
    with tf1.Graph().as_default():
        return data.train(0, 1).element_spec


def chunks(arrays: Arrays, size: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields the arrays, sorted by name, `size` examples at a time."""
    for start in range(0, examples(arrays), size):
        yield tuple(arrays[name][start : start + size] for name in sorted(arrays))


class Batched:
    """Indices of the examples in the calls of a step: those of each trainer, in turn.

    Args:
      number: of the examples.
      settings: of the experiment.
      trainers: whose batches they are.
      limit: updates after which there are no more; None for no end.
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
        """Goes on as if so many updates had been made."""
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

    TensorFlow knows it of what is made of arrays, and of a dataset that says so by
    `tf.data.experimental.assert_cardinality`.
    """
    numbers = []
    for worker in range(num_workers):
        with tf1.Graph().as_default(), tf1.Session() as session:
            found = session.run(tf.data.experimental.cardinality(stream(worker, num_workers)))
        numbers.append(int(found))
    return None if min(numbers) < 0 else numbers


def passes(dataset: Any, epochs: int | None, used: Any) -> Any:
    """Returns what is left of so many passes over a dataset when some batches have been `used`.

    Args:
      dataset: of batches.
      epochs: the number of passes; None for no end, whatever was used.
      used: int64 scalar.
    """
    if epochs is None:
        return dataset.repeat()
    size = tf.data.experimental.cardinality(dataset)
    # Whole passes need not be read to be passed over, where it is known how long they are.
    whole = tf.where(size > 0, used // tf.maximum(size, 1), tf.zeros_like(size))
    left = tf.maximum(epochs - whole, 0)
    return dataset.repeat(left).skip(used - whole * tf.maximum(size, 0))


def _kind(found: Any) -> str:
    """Returns what a value is, in words: "None" or, as of others, "a tuple"."""
    return "None" if found is None else f"a {type(found).__name__}"


def _stream(name: str, found: Callable[[int, int], Any]) -> Callable[[int, int], Any]:
    """Returns the function of a split, which raises a `UserError` where that makes no dataset."""
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
    """Returns named arrays that match; `whose` says in errors where they were given."""
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
    """Returns the SHA-256 of all arrays, "" if a split is a stream, whose data nobody has seen."""
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
