"""Copies of a step, one after another in its graph, so that one call makes several updates."""

from __future__ import annotations

import collections
import re
import threading
from typing import Any, Collection, Iterable, Sequence

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs.dependence import VARIABLES, is_handle
from compat.runtime.graphs.device_placement import shortened
from compat.runtime.graphs.homes import task_device
from compat.runtime.graphs.nodes import inputs, is_input, is_seeded, scopes
from compat.runtime.graphs.packing import pack_messages
from compat.runtime.graphs.waits import add_waits, only_reads
from compat.runtime.graphs.walk import Needed

MOST_UPDATES = 20  # Most updates in a call.
# Few sizes, because a session optimizes the graph of a call for each size anew.
SIZES = (MOST_UPDATES, 5, 1)
# Building and optimizing copies takes as long as 100 to 200 calls, so short runs do without.
CALLS_BEFORE = 100
# A collection of the names of operations that take an element and may be copied.
IN_STEP = "in_step"
# Operations whose output shares the memory of their input.
_PASS_ON = ("CheckNumerics", "ExpandDims", "Identity", "PreventGradient", "Reshape", "Squeeze")


class Chain:
    """The copies of a step. Fetching an output of copy n runs the copies 1 to n.

    Each copy reads and writes the variables of the step. On each device, a stateful operation waits
    for the stateful operations of the previous copy on that device. So an update reads the values
    that the previous one has written, without messages between devices that only signal completion.
    Reading a variable by reference, or in a branch, waits for the whole previous copy, on all
    devices.

    Args:
      graph: the graph to which the copies are added.
      fed: the inputs of each update: placeholders, or other tensors that the caller feeds.
      outputs: the tensors that are fetched from the step.
      operations: further operations of the step.
      before: operations that the caller runs first, so they are not copied.
      fails_in_order: whether a copy begins when the previous one is done on all devices, so that
        if a copy fails, all copies before it are done and none after it has begun.

    Attributes:
      obstacle: the reason, as text, why calls cannot be made as copies; "" if they can.
    """

    def __init__(
        self,
        graph: Any,
        fed: Sequence[Any],
        outputs: Sequence[Any],
        operations: Sequence[Any] = (),
        before: Collection[Any] = (),
        fails_in_order: bool = False,
    ) -> None:
        self._graph, self._placeholders, self._run = graph, fed, operations
        self._fails_in_order = self._waits_for_all = fails_in_order
        self._lock = threading.Lock()  # A program may train on several threads.
        self._copies: list[tuple[list[Any], list[Any]]] = []
        self._barriers: dict[str, Any] = {}  # By device, an operation after the last copy there.
        self._stacked: list[Any] = []
        self.obstacle = ""
        if not all(isinstance(tensor, tf.Tensor) for tensor in fed):
            self.obstacle = "a sparse tensor is fed"
            return
        names = {tensor.name for tensor in fed}
        needed = {op.name: op for op in Needed(outputs, operations, names, before).operations}
        whole = graph.as_graph_def()
        self._body = type(whole)(versions=whole.versions, library=whole.library)
        self._body.node.extend(node for node in whole.node if node.name in needed)
        for node in self._body.node:
            node.device = task_device(needed[node.name])
        self.obstacle = self._find_obstacle(needed.values(), outputs)
        if not self.obstacle:
            self._fetched = [tensor.name for tensor in outputs]
            self._prepare(needed, {*(t.op.name for t in fed), *(op.name for op in before)})

    @staticmethod
    def size(count: int, sizes: Sequence[int] = SIZES) -> int:
        """Returns how many of `count` updates are made in one call."""
        return next(size for size in sizes if size <= count)

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Whether a call can make several updates, each of which gets a row of each array."""
        dense = all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays)
        return not self.obstacle and dense

    def feed(self, arrays: Sequence[Any]) -> dict[Any, Any]:
        """Returns the feed of a call; each of `arrays` has one row for each update."""
        return dict(zip(self._stacked, arrays))

    def outputs(self, count: int) -> list[Any]:
        """Returns the tensors to fetch to make `count` updates: the outputs of the last copy."""
        return self.copies(count)[-1][0]

    def copies(self, count: int) -> list[tuple[list[Any], list[Any]]]:
        """Returns the outputs and the operations of each of the first `count` copies."""
        if len(self._copies) < count:
            with self._lock, self._graph.as_default(), private.extendable(self._graph), tf1.device(
                None
            ), tf1.name_scope(None), tf.control_dependencies(None):
                if not self._stacked:
                    self._stacked = [_stacked(p) for p in self._placeholders]
                while len(self._copies) < count:
                    self._copies.append(self._copied(len(self._copies)))
        return self._copies[:count]

    def _find_obstacle(self, operations: Iterable[Any], outputs: Sequence[Any]) -> str:
        """Returns why copies would differ from calls made one after another; "" if they would not.

        A copy of a seeded random operation draws other numbers than a later call. At the end of the
        data, separate calls return the values that are left, but all copies would fail together.
        Copies of a loop of TensorFlow 1.x would become one loop. A function with variables of
        several devices runs on all of them, but a copy of it would wait on only one.
        """
        handles = [tensor.name for tensor in outputs if tensor.dtype == tf.resource]
        if handles:
            return f"{handles[0]} is the handle of a resource"
        for operation in operations:
            if len({t.op.device for t in operation.inputs if t.dtype == tf.resource}) > 1:
                return f"{operation.name} has variables of several devices"
        in_step = self._graph.get_collection(IN_STEP)
        for _, nodes in scopes(self._body):
            for node in nodes:
                if is_seeded(node):
                    return f"{node.name} draws random numbers by a seed"
                if is_input(node.op) and node.name not in in_step:
                    return f"{node.name} takes input, behind a variable"
                if node.op == "Enter":
                    return f"{node.name} is of a tf.while_loop of TensorFlow 1.x"
        return ""

    def _prepare(self, operations: dict[str, Any], fed_names: set[str]) -> None:
        """Removes the nodes that copies share, and lists those that wait for the previous copy."""
        self._shared = {
            n: op for n, op in operations.items() if n not in fed_names and _is_shared(op)
        }
        apart = fed_names | set(self._shared)
        stored = {n: task_device(op) for n, op in operations.items() if op.type in VARIABLES}
        pack_messages(self._body, self._graph, stored)
        self._waits_for_all |= any(
            op.type == "Switch" or any(map(_is_reference, op.outputs)) for op in operations.values()
        )
        self._stateful: dict[str, list[str]] = collections.defaultdict(list)
        nodes = [node for node in self._body.node if node.name not in apart]
        followed = {name.lstrip("^").partition(":")[0] for n in nodes for name in n.input}
        waiting = []
        for node in nodes:
            operation = operations.get(node.name)  # None for a node of a message.
            inputs = [] if operation is None else operation.inputs
            handles = [t.op for t in inputs if is_handle(t)]
            # Shared nodes need no control inputs: they are available from the start.
            kept = [name for name in node.input if name[:1] != "^" or name[1:] not in apart]
            waits = operation is not None and (operation.op_def.is_stateful or handles)
            if waits:
                waiting.append(node)
            is_last = self._waits_for_all and node.name not in followed
            # A branch that is not taken never finishes, so operations after it signal the end.
            in_branch = operation is not None and private.is_in_branch_or_loop(operation)
            if (waits or is_last) and not in_branch:
                # TensorFlow places an operation with its handle, whatever device it names.
                place = (handles or [operation])[0]
                device = node.device if place is None else task_device(place)
                self._stateful[device].append(node.name)
            del node.input[:]
            node.input.extend(kept)
            node.attr.pop("_class", None)  # The device alone determines the placement.
        self._make_wait(nodes, operations, {node.name for node in waiting})
        used = {name for node in nodes for name in node.input}
        self._awaited = {d for d in self._stateful if f"^{_barrier(d)}" in used}
        self._tensors = {}
        for name, operation in self._shared.items():
            for tensor in operation.outputs:
                if used & {name, tensor.name}:
                    self._tensors[tensor.name] = tensor
        used = {name if ":" in name else f"{name}:0" for name in used}
        self._used = [p.name in used for p in self._placeholders]
        body = type(self._body)(versions=self._body.versions, library=self._body.library)
        body.node.extend(nodes)
        self._body = body

    def _make_wait(self, nodes: Sequence[Any], operations: Any, waiting: set[str]) -> None:
        """Makes stateful nodes wait for the previous copy.

        With `fails_in_order`, nodes that read the copy's inputs wait as well, so that no part of a
        copy begins before the previous copy is done.
        """
        self._waited = {  # The devices for which a copy's rows have waited, without a message.
            p.name: {d for d in self._stateful if shortened(d) == shortened(task_device(p.op))}
            for p in self._placeholders
        }
        rows = {p.op.name: self._waited[p.name] for p in self._placeholders}
        needed: dict[str, set[str]] = {}
        where = {node.name: node.device for node in nodes}
        for node in nodes:
            if node.name in waiting:
                op = operations[node.name]
                handles = [t.op for t in op.inputs if is_handle(t)]
                own_device = where[node.name] = task_device((handles or [op])[0])
                is_all = self._waits_for_all and not only_reads(op)
                needed[node.name] = {own_device, *(self._stateful if is_all else ())}
            elif self._fails_in_order and not rows.keys().isdisjoint(inputs(node)):
                needed[node.name] = set(self._stateful)
        barriers = {device: _barrier(device) for device in self._stateful}
        messages = {node.name for node in nodes} - operations.keys()
        add_waits(nodes, where, needed, rows if self._fails_in_order else {}, barriers, messages)

    def _copied(self, number: int) -> tuple[list[Any], list[Any]]:
        """Adds a copy of the step to the graph; returns the copy's outputs and operations."""
        input_map = dict(self._tensors)
        rows = {}
        for placeholder, stacked, used in zip(self._placeholders, self._stacked, self._used):
            waited = self._waited[placeholder.name] if number and self._fails_in_order else ()
            first = [self._barriers[device] for device in waited]
            with tf1.device(placeholder.device or None), tf.control_dependencies(first):
                rows[placeholder.name] = stacked[number]
            if used:
                input_map[placeholder.name] = rows[placeholder.name]
        for device in self._stateful:
            if number == 0:
                with tf1.device(device or None):
                    self._barriers[device] = tf.constant(0, name="updates/begin")
            if device in self._awaited:
                input_map[f"^{_barrier(device)}"] = self._barriers[device]
        names = [name for there in self._stateful.values() for name in there]
        shared = {t.name: t for op in self._shared.values() for t in op.outputs}
        copied = [name for name in self._fetched if name not in rows and name not in shared]
        run = [op.name for op in self._run]
        wanted = [*copied, *run, *names]
        elements = dict(
            zip(
                wanted,
                tf1.import_graph_def(
                    self._body,
                    input_map=input_map,
                    return_elements=wanted,
                    name=f"updates/{number + 1}",
                ),
            )
        )
        for device, there in self._stateful.items():
            with tf1.device(device or None), tf.control_dependencies([elements[n] for n in there]):
                self._barriers[device] = tf.constant(0, name=f"updates/{number + 1}/done")
        fetched = {**shared, **rows, **elements}
        for name in self._fetched:
            if _is_memory(fetched[name]):
                fetched[name] = self._read(fetched[name], number)
        return [fetched[name] for name in self._fetched], [elements[name] for name in run]

    def _read(self, tensor: Any, number: int) -> Any:
        """Returns a snapshot of a fetched variable, taken when a copy of the step is done.

        A tensor that reads a variable by reference is the memory of the variable, which the next
        copy changes. So the next copy waits for the snapshot. `number` counts the copies from 0.
        """
        device = task_device(tensor.op)
        done = [barrier for place, barrier in self._barriers.items() if place == device]
        done = done or list(self._barriers.values())
        with tf1.device(device or None):
            with tf.control_dependencies(done):
                read = tf.raw_ops.Snapshot(input=tensor)
            with tf.control_dependencies([*done, read]):
                self._barriers[device] = tf.constant(0, name=f"updates/{number + 1}/read")
        return read


def failed_copy(message: str) -> int:
    """Returns the number, from 1, of the copy that an error message names; 0 for none."""
    match = re.search(r"\bupdates(?:_\d+)?/(\d+)(?:_\d+)?/", message)
    return int(match.group(1)) if match else 0


def _barrier(device: str) -> str:
    """Returns the name of the operation by which a copy waits for the previous one on a device."""
    return "before" + "".join(c if c.isalnum() else "_" for c in device)


def _is_shared(operation: Any) -> bool:
    """Whether all copies share an operation: a constant, or the handle of a variable or table."""
    if operation.inputs or operation.control_inputs:
        return False
    outputs = operation.outputs
    return operation.type == "Const" or bool(outputs and all(map(is_handle, outputs)))


def _is_memory(tensor: Any) -> bool:
    """Whether a tensor may be the memory of a variable, which is read by reference."""
    while not _is_reference(tensor):
        if tensor.op.type not in _PASS_ON:
            return False
        tensor = tensor.op.inputs[0]
    return True


def _is_reference(tensor: Any) -> bool:
    return bool(tensor.dtype != tensor.dtype.base_dtype)


def _stacked(placeholder: Any) -> Any:
    """Returns the placeholder of the values of several updates."""
    with tf1.device(placeholder.device or None):
        shape = placeholder.shape
        more = tf.TensorShape([None]).concatenate(shape) if shape.rank is not None else None
        return tf1.placeholder(placeholder.dtype, more, name="updates/stacked")
