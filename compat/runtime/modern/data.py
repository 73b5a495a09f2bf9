"""The data that a step reads on its worker: stored arrays, and a dataset."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from compat._tensorflow import private, tf
from compat.runtime.graphs.device_placement import worker_of

Dataset = Callable[[int, int], Any]


class Opened(NamedTuple):
    """The data inside a step's function."""

    arrays: Sequence[Any]  # The stored tensors.
    iterator: Any  # The iterator of the dataset, or None.
    worker: Any  # The worker's index, int64 scalar; None on a worker without a dataset.


class OwnData:
    """The data of a step that runs in this process; `shard` is (index, number of shards)."""

    def __init__(
        self, arrays: Sequence[Any], dataset: Dataset | None, shard: tuple[int, int]
    ) -> None:
        self._arrays = tuple(arrays)
        self._dataset = dataset
        self._shard = shard
        self._iterator: Any = None

    def restart(self) -> None:
        """Restarts the dataset with the next call."""
        self._iterator = None

    @property
    def source(self) -> Any:
        """The first argument of the step's function."""
        if self._dataset is None:
            return self._arrays
        if self._iterator is None:
            self._iterator = self._open(self._dataset)
        return (self._arrays, self._iterator)

    def _open(self, dataset: Dataset) -> Any:
        return iter(dataset(*self._shard))

    def opened(self, source: Any) -> Opened:
        """Returns the data inside a step's function; `source` is the function's first argument."""
        arrays, iterator = (source, None) if self._dataset is None else source
        return Opened(arrays, iterator, tf.constant(0, tf.int64))


class WorkerData(OwnData):
    """The data of a step that workers run; a worker that replaces a lost one stores it again."""

    def __init__(
        self, coordinator: Any, arrays: Sequence[Any], dataset: Dataset | None, shard: Any
    ) -> None:
        super().__init__((), dataset, shard)
        self._coordinator = coordinator
        self._has_arrays = bool(arrays)
        if arrays:
            self._arrays = iter(
                coordinator.create_per_worker_dataset(
                    lambda: tf.data.Dataset.from_tensors(tuple(arrays)).repeat()
                )
            )

    def _open(self, dataset: Dataset) -> Any:
        workers = self._shard[1]
        iterators = private.per_worker_values(
            self._coordinator,
            lambda: iter(dataset(_worker_index(), workers)),
            tf.data.IteratorSpec(dataset(0, workers).element_spec),
        )
        indices = private.per_worker_values(
            self._coordinator, lambda: tf.constant(_worker_index(), tf.int64)
        )
        return iterators, indices

    def opened(self, source: Any) -> Opened:
        """Returns the data inside a step's function; `source` is the function's first argument."""
        stored, (iterator, worker) = (source, (None, None)) if self._dataset is None else source
        return Opened(stored.get_next() if self._has_arrays else (), iterator, worker)


def _worker_index() -> int:
    """Returns the index of the worker whose device is the default one."""
    return worker_of(tf.zeros([]).device) or 0
