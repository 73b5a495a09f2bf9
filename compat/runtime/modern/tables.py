"""Lookup tables that a step uses, copied to each worker: a handle means nothing elsewhere."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from compat._tensorflow import tf, tf1

_FIND = "LookupTableFindV2"


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
    begin = function.graph.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
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
