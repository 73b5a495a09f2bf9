"""Lookup tables of a graph, copied to each worker that runs a part of it.

The handle of a table is valid only in the process that has created it.
"""

from __future__ import annotations

import uuid
from typing import Any, Mapping, Sequence

from compat._tensorflow import tf, tf1

_FIND = "LookupTableFindV2"
_KINDS = ("HashTableV2",)


class Tables:
    """The tables in which operations of a graph look something up; their contents must not change.

    Args:
      session: the session in which the program fills the tables.
      operations: operations of the graph.
    """

    def __init__(self, session: Any, operations: Sequence[Any]) -> None:
        self._session = session
        lookups = [op for op in operations if _finds(op)]
        self._types = {op.inputs[0].op: (op.get_attr("Tin"), op.get_attr("Tout")) for op in lookups}
        self._exports = {op.inputs[0].op: export(op) for op in lookups}
        # A shared name, by which all functions on a worker use the same copies.
        self._names = {op: f"table/{uuid.uuid4().hex}" for op in self._types}
        self._contents: dict[Any, tuple[Any, Any]] = {}

    def __contains__(self, op: Any) -> bool:
        return op in self._types

    def read(self) -> None:
        """Reads the contents of the tables in the session."""
        for op, tensors in self._exports.items():
            if op not in self._contents:
                self._contents[op] = tuple(self._session.call(list(tensors)))

    def opened(self) -> Mapping[str, Any]:
        """Creates copies inside a function; returns their handles by the tables' tensor names."""
        return {op.outputs[0].name: self._copy(op) for op in self._types}

    def _copy(self, op: Any) -> Any:
        key_type, value_type = self._types[op]
        keys, values = self._contents[op]
        handle = tf1.raw_ops.HashTableV2(
            key_dtype=key_type, value_dtype=value_type, shared_name=self._names[op]
        )

        def fill() -> Any:
            tf1.raw_ops.LookupTableImportV2(
                table_handle=handle,
                keys=tf.constant(keys, key_type),
                values=tf.constant(values, value_type),
            )
            return tf.constant(True)

        size = tf1.raw_ops.LookupTableSizeV2(table_handle=handle)
        tf.cond(size > 0, lambda: tf.constant(True), fill)
        return handle


def _finds(op: Any) -> bool:
    return op.type == _FIND and op.inputs[0].op.type in _KINDS


def export(op: Any) -> Any:
    """Returns tensors with the contents of the table that `op` uses; None if it is no lookup.

    Creates them once for each table, before the graph is finalized.
    """
    if not _finds(op):
        return None
    table = op.inputs[0].op
    name = f"compat_export/{table.name}"
    if name not in {each.name for each in table.outputs[0].consumers()}:
        with table.graph.as_default(), tf1.name_scope(None), tf1.control_dependencies(None):
            tf1.raw_ops.LookupTableExportV2(
                table_handle=table.outputs[0],
                Tkeys=op.get_attr("Tin"),
                Tvalues=op.get_attr("Tout"),
                name=name,
            )
    return table.graph.get_operation_by_name(name).outputs
