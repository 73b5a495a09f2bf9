"""Finds the operations of a graph that depend on variables that TensorFlow 2 stores."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs.homes import Homes

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
# Handles of values that last as long as a call.
_OF_A_CALL = ("TensorArray", "Stack", "Placeholder")


def holds_state(op: Any) -> bool:
    """Whether an operation is the handle of a variable, a queue, a table or the like."""
    if not op.outputs or op.type.startswith(_OF_A_CALL) or any(map(is_handle, op.inputs)):
        return False
    return is_handle(op.outputs[0]) and bool(op.op_def.is_stateful)


def is_handle(tensor: Any) -> bool:
    """Whether a tensor refers to state: a resource, or a reference as in TensorFlow 1.x."""
    return tensor.dtype == tf.resource or tensor.dtype != tensor.dtype.base_dtype


class Dependence:
    """The operations of a graph that TensorFlow 2 has to run, since they depend on its variables.

    TensorFlow 2 also stores the state that such an operation uses, and runs all other operations
    that use this state. The search is linear, and continues with the operations that were added.

    Attributes:
      operations: all dependent operations.
      state: the dependent operations that are handles of state.
      version: changes when an earlier operation becomes dependent.
    """

    def __init__(self, graph: Any, homes: Homes, own_task: Callable[[], str]) -> None:
        self._graph, self._homes, self._own_task = graph, homes, own_task
        self._seen, self._seen_version = 0, -1
        self.operations: set[Any] = set()
        self.state: set[Any] = set()
        self.version = 0

    def update(self) -> None:
        """Adds the operations that the graph got since the last call."""
        version = self._graph.version
        if version == self._seen_version:
            return
        self._seen_version = version
        with private.unchanged(self._graph):
            self._update()

    def _update(self) -> None:
        every = self._graph.get_operations()
        new = every[self._seen :]
        self._seen = len(every)
        with self._graph.as_default():
            # Local variables stay with their worker, wherever a setter would place them.
            local = {variable.op.name for variable in tf1.local_variables()}
        for op in new:
            self._homes.note(op, is_local=op.name in local)
        added = set(new)
        for op in new:
            if self._begins(op, local) or any(
                before in self.operations
                for before in [*(tensor.op for tensor in op.inputs), *op.control_inputs]
            ):
                self._add(op, added)

    def is_elsewhere(self, op: Any) -> bool:
        """Whether an operation belongs to another task of the cluster."""
        own_task = self._own_task()
        return own_task != "" and self._homes.of(op) not in ("", own_task)

    def _begins(self, op: Any, local: set[str]) -> bool:
        """Whether TensorFlow 2 stores the state of an operation, whichever operations use it.

        This is so for all variables except those named in `local`, and for other state that other
        tasks can find.
        """
        if not holds_state(op):
            return False
        if op.type in VARIABLES:
            return op.name not in local
        if op.type == "OneShotIterator":  # It has no name by which other tasks could find it.
            return False
        home = self._homes.of(op)
        if home == self._own_task():  # Other tasks find it by a name that the program gives.
            return home != "" and shared_name(op) != ""
        return home != ""

    def _add(self, op: Any, new: set[Any]) -> None:
        todo = [op]
        while todo:
            op = todo.pop()
            if op in self.operations:
                continue
            self.operations.add(op)
            if op not in new:
                self.version += 1
            if holds_state(op):
                self.state.add(op)
            for tensor in op.outputs:
                todo.extend(tensor.consumers())
            todo.extend(private.control_outputs(op))
            todo.extend(t.op for t in op.inputs if is_handle(t) and holds_state(t.op))


def shared_name(op: Any) -> str:
    """Returns the name by which other sessions find the state of an operation; "" for none."""
    names = [attr.name for attr in op.op_def.attr]
    return str(op.get_attr("shared_name").decode()) if "shared_name" in names else ""
