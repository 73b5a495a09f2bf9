"""What a step reads on the worker that runs it: stored arrays, a dataset, and lookup tables.

Tables are copied to each worker: a handle means nothing elsewhere.
"""

from __future__ import annotations

import uuid
from typing import Any, Callable, NamedTuple, Sequence

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs.device_placement import worker_of

Dataset = Callable[[int, int], Any]
_FIND = "LookupTableFindV2"


class Opened(NamedTuple):
    """The data inside a step's function."""

    arrays: Sequence[Any]  # The stored tensors.
    iterator: Any  # Of the dataset, or None.
    worker: Any  # The worker's index, int64 scalar; None on a worker without a dataset.


class OwnData:
    """The data of a step that runs in this process; `shard` is its index and the number of all."""

    def __init__(
        self, arrays: Sequence[Any], dataset: Dataset | None, shard: tuple[int, int]
    ) -> None:
        self._arrays = tuple(arrays)
        self._dataset = dataset
        self._shard = shard
        self._iterator: Any = None

    def restart(self) -> None:
        """Begins the dataset anew, with the next call."""
        self._iterator = None

    @property
    def source(self) -> Any:
        """What is passed to the step's function."""
        if self._dataset is None:
            return self._arrays
        if self._iterator is None:
            self._iterator = self._open(self._dataset)
        return (self._arrays, self._iterator)

    def _open(self, dataset: Dataset) -> Any:
        return iter(dataset(*self._shard))

    def opened(self, source: Any) -> Opened:
        """Returns the data inside the function, of its first argument."""
        arrays, iterator = (source, None) if self._dataset is None else source
        return Opened(arrays, iterator, tf.constant(0, tf.int64))


class WorkerData(OwnData):
    """The data of a step that each worker runs, stored again on one that was replaced."""

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
        """Returns the data inside the function, of its first argument."""
        stored, (iterator, worker) = (source, (None, None)) if self._dataset is None else source
        return Opened(stored.get_next() if self._has_arrays else (), iterator, worker)


def _worker_index() -> int:
    """Returns the index of the worker whose device is the default one."""
    return worker_of(tf.zeros([]).device) or 0


class Table(NamedTuple):
    """The content of a table that does not change."""

    name: str  # By which all steps on a worker share their copy.
    keys: Any  # A tensor `[size]`.
    values: Any  # A tensor `[size]`.

    def on_worker(self) -> Any:
        """Returns the handle of the worker's copy, inside a function that is being traced."""
        handle = tf1.raw_ops.HashTableV2(
            key_dtype=self.keys.dtype, value_dtype=self.values.dtype, shared_name=self.name
        )

        def fill() -> Any:
            tf1.raw_ops.LookupTableImportV2(
                table_handle=handle, keys=tf.constant(keys), values=tf.constant(values)
            )
            return tf.constant(True)

        keys, values = self.keys.numpy(), self.values.numpy()
        size = tf1.raw_ops.LookupTableSizeV2(table_handle=handle)
        tf.cond(size > 0, lambda: tf.constant(True), fill)
        return handle


def captured_tables(function: Any) -> dict[int, Table]:
    """Fills the tables that a wrapped function captures; returns them by `id` of their handle."""
    inside = {inner.name: outer for outer, inner in function.graph.captures}
    # None stands for a table of a feature column, which is made and filled outside the graph.
    begin = function.graph.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
    begin = [operation for operation in begin if operation is not None]
    if begin:
        function.prune([], begin)()
    found = {}
    for operation in function.graph.get_operations():
        handle = inside.get(operation.inputs[0].name) if operation.type == _FIND else None
        if handle is not None and id(handle) not in found:
            keys, values = tf1.raw_ops.LookupTableExportV2(
                table_handle=handle,
                Tkeys=operation.get_attr("Tin"),
                Tvalues=operation.get_attr("Tout"),
            )
            found[id(handle)] = Table(f"table/{uuid.uuid4().hex}", keys, values)
    return found
