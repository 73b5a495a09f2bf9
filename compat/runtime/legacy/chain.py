"""Copies of a step, one after another in its graph, so that one call makes several updates."""

from __future__ import annotations

import collections
import threading
from typing import Any, Sequence

import numpy as np

from compat._tensorflow import private, quietly, tf, tf1
from compat.runtime.legacy.variables import is_input
from compat.runtime.nodes import is_seeded, scopes
from compat.runtime.packing import read_as_one

MOST_UPDATES = 20  # In a call.
# Few sizes, for a session optimizes what each call of another size runs anew.
_SIZES = (MOST_UPDATES, 5, 1)
# A collection: names of operations that take an element each, which copies may do as well.
IN_STEP = "in_step"
_CONTROL_FLOW = ("Enter", "Switch")  # Of TensorFlow 1.x: copies of loops would be one loop.


class Chain:
    """The copies of a step; to fetch what copy n gives is to run the copies 1 to n.

    Each reads and writes the variables of the step. What has state waits, on each device, for all
    of the copy before it that has state there: so an update reads what the one before has written,
    and no message between devices only says that something is done.

    Args:
      graph: to which the copies are added.
      placeholders: what each update is given.
      outputs: what is fetched of the step.
    """

    def __init__(self, graph: Any, placeholders: Sequence[Any], outputs: Sequence[Any]) -> None:
        self._graph, self._placeholders = graph, placeholders
        self._lock = threading.Lock()  # A program may train on several threads.
        self._outputs: list[list[Any]] = []  # Of each copy.
        self._barriers: dict[str, Any] = {}  # Done when the last copy is, by device.
        self._stacked: list[Any] = []
        with quietly():  # Says that it is deprecated, not by what.
            self._body = tf1.graph_util.extract_sub_graph(
                self._graph.as_graph_def(), sorted({tensor.op.name for tensor in outputs})
            )
        operations = {n.name: self._graph.get_operation_by_name(n.name) for n in self._body.node}
        self._is_possible = self._can_be_copied(operations.values())
        if self._is_possible:
            self._fetched = [tensor.name for tensor in outputs]
            self._prepare(operations)

    @staticmethod
    def size(count: int) -> int:
        """Returns how many of `count` updates are made in one call."""
        return next(size for size in _SIZES if size <= count)

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Whether a call can make several updates, which are given a row of each array."""
        dense = all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays)
        return self._is_possible and dense

    def feed(self, arrays: Sequence[Any]) -> dict[Any, Any]:
        """Returns the feed of a call, of arrays with a row for each update."""
        return dict(zip(self._stacked, arrays))

    def outputs(self, count: int) -> list[Any]:
        """Returns what is fetched to make `count` updates: the outputs of the last."""
        if len(self._outputs) < count:
            with self._lock, self._graph.as_default(), private.extendable(self._graph), tf1.device(
                None
            ), tf1.name_scope(None), tf.control_dependencies(None):
                if not self._outputs:
                    self._stacked = [_stacked(p) for p in self._placeholders]
                while len(self._outputs) < count:
                    self._outputs.append(self._copied(len(self._outputs)))
        return self._outputs[count - 1]

    def _can_be_copied(self, operations: Any) -> bool:
        """Whether the copies do what calls would do one after another.

        A copy would draw other numbers than a later call; at the end of the data the calls before
        have values; what reads a variable by reference may see it before or after an update; and a
        function that is called with variables of several devices is done on all of them.
        """
        if not all(isinstance(placeholder, tf.Tensor) for placeholder in self._placeholders):
            return False
        for operation in operations:
            if any(t.dtype != t.dtype.base_dtype for t in operation.outputs):
                return False
            if len({t.op.device for t in operation.inputs if t.dtype == tf.resource}) > 1:
                return False
        in_step = self._graph.get_collection(IN_STEP)
        return not any(
            is_seeded(node)
            or (is_input(node.op) and node.name not in in_step)
            or node.op in _CONTROL_FLOW
            for _, nodes in scopes(self._body)
            for node in nodes
        )

    def _prepare(self, operations: dict[str, Any]) -> None:
        """Takes from the body what its copies share, and marks what waits for the copy before."""
        given = {placeholder.op.name for placeholder in self._placeholders}
        self._shared = {n: op for n, op in operations.items() if n not in given and _is_shared(op)}
        apart = given | set(self._shared)
        homes = {n: op.device for n, op in self._shared.items() if op.type != "Const"}
        read_as_one(self._body, self._graph, homes)
        self._stateful: dict[str, list[str]] = collections.defaultdict(list)
        nodes = [node for node in self._body.node if node.name not in apart]
        for node in nodes:
            operation = operations.get(node.name)  # None: of a message.
            inputs = [] if operation is None else operation.inputs
            handles = [tensor.op for tensor in inputs if tensor.dtype == tf.resource]
            # Nothing has to wait for what is there from the start.
            kept = [name for name in node.input if name[:1] != "^" or name[1:] not in apart]
            if operation is not None and (operation.op_def.is_stateful or handles):
                # TensorFlow places it so, whatever device it asks for.
                device = (handles or [operation])[0].device
                self._stateful[device].append(node.name)
                kept.append(f"^{_barrier(device)}")
            del node.input[:]
            node.input.extend(kept)
            node.attr.pop("_class", None)  # Where it runs, its device says.
        used = {name for node in nodes for name in node.input}
        self._tensors = {}
        for name, operation in self._shared.items():
            for tensor in operation.outputs:
                if used & {name, tensor.name}:
                    self._tensors[tensor.name] = tensor
        self._used = [used & {p.name, p.op.name} != set() for p in self._placeholders]
        body = type(self._body)(versions=self._body.versions, library=self._body.library)
        body.node.extend(nodes)
        self._body = body

    def _copied(self, number: int) -> list[Any]:
        """Adds a copy to the graph; returns its outputs."""
        given = dict(self._tensors)
        for placeholder, stacked, used in zip(self._placeholders, self._stacked, self._used):
            if used:
                with tf1.device(placeholder.device or None):
                    given[placeholder.name] = stacked[number]
        for device in self._stateful:
            if number == 0:
                with tf1.device(device or None):
                    self._barriers[device] = tf.constant(0, name="updates/begin")
            given[f"^{_barrier(device)}"] = self._barriers[device]
        names = [name for there in self._stateful.values() for name in there]
        found = tf1.import_graph_def(
            self._body,
            input_map=given,
            return_elements=[*self._fetched, *names],
            name=f"updates/{number + 1}",
        )
        outputs, done = found[: len(self._fetched)], dict(zip(names, found[len(self._fetched) :]))
        for device, there in self._stateful.items():
            with tf1.device(device or None), tf.control_dependencies([done[n] for n in there]):
                self._barriers[device] = tf.constant(0, name=f"updates/{number + 1}/done")
        return list(outputs)


def _barrier(device: str) -> str:
    """Returns the name by which the body knows that the copy before is done on a device."""
    return "before" + "".join(c if c.isalnum() else "_" for c in device)


def _is_shared(operation: Any) -> bool:
    """Whether all copies use one: a constant, or the handle of a variable or of a table."""
    if operation.inputs or operation.control_inputs:
        return False
    dtypes = {tensor.dtype for tensor in operation.outputs}
    return operation.type == "Const" or dtypes == {tf.resource}


def _stacked(placeholder: Any) -> Any:
    """Returns the placeholder of the values of several updates."""
    with tf1.device(placeholder.device or None):
        shape = placeholder.shape
        more = tf.TensorShape([None]).concatenate(shape) if shape.rank is not None else None
        return tf1.placeholder(placeholder.dtype, more, name="updates/stacked")
