"""Splits the operations of a session call between TensorFlow's session and a function.

TensorFlow 2 stores the variables, so a function has to run the operations that use them. The
session runs only operations that need its own state, such as queues. All others are lifted, that
is, copied into the function.
"""

from __future__ import annotations

import collections
from typing import Any, Collection, Mapping, Sequence

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs import draws, nodes
from compat.runtime.graphs.dependence import VARIABLES, Dependence, holds_state, is_handle
from compat.runtime.graphs.packing import is_small, pack_messages, packed, unpacked
from compat.runtime.graphs.walk import Needed

# Numbers in TensorFlow's full_type.proto.
_UNSET, _PRODUCT, _INT32, _SHAPE_TENSOR = 0, 3, 207, 1005
_PYTHON = ("PyFunc", "EagerPyFunc")


class Part:
    """The operations of one kind of call: those for TensorFlow's session, and the lifted ones.

    TensorFlow's session runs the operations that do not depend on variables of TensorFlow 2 but
    have state (queues, readers, iterators, tables, Python functions, this process's random
    numbers), since it has that state. All other operations of the call are lifted into a function,
    which takes the session's values as inputs.

    Attributes:
      edges: tensors whose values the session computes first.
      targets: operations that the session runs first.
      graph_def: the lifted operations.
      inputs: the function's inputs: the tensors that the call feeds, then the edges.
      counters: the counters of its random operations, by the name of the handle.
      fetched: tensors that the call returns.
      run: further lifted operations that the call runs.
    """

    def __init__(
        self,
        graph: Any,
        dependence: Dependence,
        fetched: Sequence[Any],
        operations: Sequence[Any],
        fed: Collection[Any],
        place: Any,
    ) -> None:
        names = {tensor.name for tensor in fed}
        needed = Needed(fetched, operations, names)
        self.is_empty = needed.operations.isdisjoint(dependence.operations)
        if self.is_empty:
            return
        self._graph, self._dependence, self._place = graph, dependence, place
        self.fetched = fetched
        elsewhere = self._run_first(needed.operations)
        lifted = Needed(fetched, operations, names, elsewhere)
        self.edges = [lifted.edges[name] for name in sorted(lifted.edges)]
        self.run = [op for op in operations if op in lifted.operations]
        self.targets = sorted(
            elsewhere.intersection(
                [*operations, *(c for op in lifted.operations for c in op.control_inputs)]
            ),
            key=lambda op: op.name,
        )
        self.counters: dict[str, draws.Counter] = {}
        self.graph_def = self._described(lifted.operations)
        used = {_full(name) for node in self.graph_def.node for name in node.input}
        wanted = used | {tensor.name for tensor in fetched}
        self.inputs = [t for t in [*fed, *self.edges] if t.name in wanted]
        self.used = used

    def _run_first(self, needed: set[Any]) -> set[Any]:
        """Returns the operations that TensorFlow's session runs before the lifted ones."""
        first = {
            op
            for op in needed - self._dependence.operations
            if any(is_handle(t) and lasts(t) for t in op.inputs)
            or op.type in _PYTHON
            or (draws.draws(op) and not self._draws_there(op))
        }
        # No value can leave a branch of a `cond` or a loop's body, so the session runs all of it.
        todo = [op for op in first if private.is_in_branch_or_loop(op)]
        while todo:
            op = todo.pop()
            for after in {c for tensor in op.outputs for c in tensor.consumers()} & needed:
                if after in self._dependence.operations:
                    raise tf1.errors.UnimplementedError(
                        op.node_def,
                        op,
                        f"{op.name} reads input inside tf.cond or tf.while_loop together with "
                        f"{after.name}, which depends on variables of the modern runtime; read it "
                        "outside, or use --runtime=legacy",
                    )
                if after not in first:
                    first.add(after)
                    if private.is_in_branch_or_loop(after):
                        todo.append(after)
        return first

    def _draws_there(self, op: Any) -> bool:
        """Returns whether a random operation is lifted into the function, not run by the session.

        True inside a branch or a loop, since the session would have to run all of it. Also True for
        an operation that is placed on another task, such as an initializer on a parameter server,
        if a function can run the operation.
        """
        if private.is_in_branch_or_loop(op):
            return True
        return self._dependence.is_elsewhere(op) and draws.can_be_lifted(op)

    def variables(self) -> list[Any]:
        """Returns the nodes of variables in the lifted part."""
        return [node for node in self.graph_def.node if node.op in VARIABLES]

    def _described(self, operations: set[Any]) -> Any:
        """Returns the `GraphDef` of the lifted operations."""
        whole = self._graph.graph_def_versions
        described = tf1.GraphDef(versions=whole)
        names = {op.name for op in operations}
        for op in operations:
            node = nodes.add(described, op, names)
            self._place(op, node)
            _describe_integers(op, node)
            counter = draws.converted(op, node)
            if counter is not None:
                self.counters[counter.handle] = counter
        stored = {node.name: node.device for node in described.node if node.op in VARIABLES}
        pack_messages(described, self._graph, stored)
        if self.counters:
            draws.add_algorithm(described)
        nodes.add_functions(described, self._graph)
        return described


def _is_reference_to_integers(tensor: Any) -> bool:
    return tensor.dtype.base_dtype == tf.int32 != tensor.dtype


def _describe_integers(op: Any, node: Any) -> None:
    """Sets the full type of references to 32-bit integers, which functions need.

    A function's 32-bit integers are in host memory. Since about 2.13 TensorFlow finds such integers
    by the full type, which it sets for tensors and not for references.
    """
    types = getattr(node, "experimental_type", None)
    if types is None or not any(_is_reference_to_integers(tensor) for tensor in op.outputs):
        return
    types.Clear()
    types.type_id = _PRODUCT
    for tensor in op.outputs:
        is_integer = tensor.dtype.base_dtype == tf.int32
        types.args.add().type_id = _SHAPE_TENSOR if is_integer else _UNSET
        if is_integer:
            types.args[-1].args.add().type_id = _INT32


def lasts(handle: Any) -> bool:
    """Whether a handle refers to state that lasts longer than a call."""
    op = nodes.source(handle)
    return holds_state(op) or (bool(op.op_def.is_stateful) and op.type.startswith("Iterator"))


def _full(name: str) -> str:
    """Returns the full name, with ":0", of a tensor as a node spells it."""
    return name if ":" in name or name[0] == "^" else name + ":0"


def function(part: Part, counters: Mapping[str, Any], device: str) -> Any:
    """Returns the function that runs the lifted operations on `part.inputs`.

    Args:
      part: a part of a graph.
      counters: by name, handles of the variables in which random operations count.
      device: the device of this process, to which the function copies the return values; to fetch
        them from a server would take another call.
    """
    nodes.register_functions(part.graph_def)

    def run(*values: Any) -> list[Any]:
        graph = tf1.get_default_graph()
        input_map = {tensor.name: value for tensor, value in zip(part.inputs, values)}
        input_map.update({name: graph.capture(counters[name]) for name in part.counters})
        wanted = [t.name for t in part.fetched if t.name not in input_map]
        wanted += [op.name for op in part.run]
        elements = dict(
            zip(
                wanted,
                tf1.import_graph_def(
                    part.graph_def,
                    {name: value for name, value in input_map.items() if name in part.used},
                    wanted,
                    name="",
                ),
            )
        )
        done = [elements[op.name] for op in part.run]
        graph.control_outputs.extend(done)  # Waits without a message.
        fetched = [
            input_map[t.name] if t.name in input_map else elements[t.name] for t in part.fetched
        ]
        read = [_value(*both, done, device) for both in zip(fetched, part.fetched)]
        return [*_arrived(read, device), tf.constant(0)]

    # `wrap_function` adds no automatic control dependencies: the program has its own.
    return tf1.wrap_function(run, [tf.TensorSpec(t.shape, t.dtype.base_dtype) for t in part.inputs])


def _value(tensor: Any, like: Any, done: Sequence[Any], device: str) -> Any:
    """Returns the tensor that a session would return; for a variable's handle, its value.

    The value of a variable by reference, or in this process, is read when the call is done.
    """
    if like.dtype == tf.resource and like.op.type == "VarHandleOp":
        tensor = tf.raw_ops.ReadVariableOp(resource=tensor, dtype=like.op.get_attr("dtype"))
    is_reference = like.dtype != like.dtype.base_dtype
    is_copied = is_reference or like.op.type == "Snapshot"
    place = tensor.device if is_copied else device
    with tf.device(place), tf.control_dependencies(done if is_reference or not device else []):
        return tf.identity(tensor, name=f"{like.op.name}/fetched")


def _arrived(values: list[Any], device: str) -> list[Any]:
    """Copies values to this process; the values of a server are one message."""
    servers: dict[Any, list[int]] = collections.defaultdict(list)
    for number, value in enumerate(values):
        if device and value.device not in ("", device):
            servers[value.device, value.dtype if is_small(value) else number].append(number)
    for (server, _), numbers in servers.items():
        copied = [values[number] for number in numbers]
        with tf.device(server):
            flat = packed(copied) if len(copied) > 1 else None
        with tf.device(device):
            shapes = [value.shape for value in copied]
            here = copied if flat is None else unpacked(flat, shapes)
            for number, value in zip(numbers, here):
                values[number] = tf.identity(value)
    return values


def free(stored: Sequence[Any]) -> None:
    """Frees the memory of variables."""
    described = tf1.GraphDef()
    described.node.extend(stored)

    def run() -> Any:
        names = [node.name + ":0" for node in stored]
        freed = []
        for handle in tf1.import_graph_def(described, {}, names, name=""):
            if handle.dtype == tf.resource:
                freed.append(
                    tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
                )
            else:  # A variable by reference cannot be destroyed, but can be made empty.
                empty = tf.zeros([0], handle.dtype.base_dtype)
                freed.append(tf1.assign(handle, empty, validate_shape=False).op)
        with tf.control_dependencies(freed):
            return tf.constant(0)

    tf1.wrap_function(run, [])()
