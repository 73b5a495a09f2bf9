"""What a step reads on the worker that runs it: arrays that are stored there, and a dataset."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Sequence

from compat._tensorflow import per_worker_values, tf

Dataset = Callable[[int, int], Any]


class Opened(NamedTuple):
    """The data inside a step's function.

    Attributes:
      arrays: the stored tensors.
      iterator: of the dataset, or None.
      worker: the worker's index, int64 scalar; None on a worker without a dataset.
    """

    arrays: Sequence[Any]
    iterator: Any
    worker: Any


class OwnData:
    """The data of a step that runs in this process.

    Args:
      arrays: tensors.
      dataset: as for `compat.step`, or None.
      worker: index of this process among the workers.
      num_workers: how many there are.
    """

    def __init__(
        self, arrays: Sequence[Any], dataset: Dataset | None, worker: int = 0, num_workers: int = 1
    ) -> None:
        self._arrays = tuple(arrays)
        self._dataset = dataset
        self._shard = worker, num_workers
        self._iterator: Any = None

    @property
    def source(self) -> Any:
        """What is passed to the step's function."""
        if self._dataset is None:
            return self._arrays
        if self._iterator is None:
            self._iterator = iter(self._dataset(*self._shard))
        return (self._arrays, self._iterator)

    def restart(self) -> None:
        """Begins the dataset anew, with the next call."""
        self._iterator = None

    def opened(self, source: Any) -> Opened:
        """Returns the data inside the function, of its first argument."""
        arrays, iterator = (source, None) if self._dataset is None else source
        return Opened(arrays, iterator, tf.constant(0, tf.int64))


class WorkerData:
    """The data of a step that workers run, each on its own.

    TensorFlow stores it again on a worker that was replaced. A dataset begins anew there.

    Args:
      coordinator: schedules the step.
      arrays: tensors, stored on each worker.
      dataset: as for `compat.step`, or None.
      num_workers: of the cluster.
    """

    def __init__(
        self, coordinator: Any, arrays: Sequence[Any], dataset: Dataset | None, num_workers: int
    ) -> None:
        self._coordinator = coordinator
        self._dataset = dataset
        self._num_workers = num_workers
        self._has_arrays = bool(arrays)
        self._stored: Any = ()
        self._iterator: Any = None
        self._workers: Any = None
        if arrays:
            self._stored = iter(
                coordinator.create_per_worker_dataset(
                    lambda: tf.data.Dataset.from_tensors(tuple(arrays)).repeat()
                )
            )
        if dataset is not None:
            self._spec = tf.data.IteratorSpec(dataset(0, num_workers).element_spec)
            self._workers = per_worker_values(coordinator, _worker_index_tensor)

    @property
    def source(self) -> Any:
        """What is passed to the step's function."""
        if self._dataset is None:
            return self._stored
        if self._iterator is None:
            self._iterator = per_worker_values(self._coordinator, self._open, self._spec)
        return (self._stored, self._iterator, self._workers)

    def _open(self) -> Any:
        """Makes the iterator of a worker; called for each with its device."""
        assert self._dataset is not None
        return iter(self._dataset(_worker_index(), self._num_workers))

    def restart(self) -> None:
        """Begins the dataset anew, with the next call."""
        self._iterator = None

    def opened(self, source: Any) -> Opened:
        """Returns the data inside the function, of its first argument."""
        if self._dataset is None:
            return Opened(source.get_next() if self._has_arrays else (), None, None)
        stored, iterator, worker = source
        return Opened(stored.get_next() if self._has_arrays else (), iterator, worker)


def _worker_index() -> int:
    """Returns the index of the worker whose device is the default one."""
    found = re.search(r"/job:worker/replica:\d+/task:(\d+)", tf.zeros([]).device)
    return int(found.group(1)) if found else 0


def _worker_index_tensor() -> Any:
    return tf.constant(_worker_index(), tf.int64)
