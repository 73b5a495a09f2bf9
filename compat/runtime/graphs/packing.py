"""Packs tensors into one message, since a small step takes as long as its messages."""

from __future__ import annotations

import collections
from typing import Any, Iterator, Mapping, Sequence

from compat._tensorflow import tf, tf1
from compat.runtime.graphs.dependence import is_handle
from compat.runtime.graphs.device_placement import shortened
from compat.runtime.graphs.draws import draws
from compat.runtime.graphs.nodes import in_order, inputs

# Packing copies a tensor twice; for tensors above 128 KiB that takes longer than a message.
_MOST_BYTES = 1 << 17
_CONSTANT = "constant"  # In place of the device of a constant.
# Operations that begin a branch or a loop, parts of which may never run.
_CONTROL_FLOW = ("Switch", "RefSwitch", "Enter", "RefEnter")


def packed(tensors: Sequence[Any]) -> Any:
    """Returns the elements of all tensors, which have one dtype, as a vector `[elements]`."""
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)


def unpacked(flat: Any, shapes: Sequence[Any]) -> list[Any]:
    """Splits a vector that `packed` returned into tensors of these fully defined shapes."""
    parts = tf.split(flat, [shape.num_elements() for shape in shapes])
    return [tf.reshape(part, shape) for part, shape in zip(parts, shapes)]


def pack_messages(body: Any, graph: Any, variables: Mapping[str, str]) -> None:
    """Packs the tensors that one device sends another at the same stage into a single message.

    Two tensors are of the same stage if they wait for the same number of messages between devices.
    So neither depends on the other, and their readers can wait for both. Only tensors of up to
    128 KiB, of known shape, are packed, and only if each call computes them independently of other
    programs.

    Args:
      body: the `GraphDef` of operations of `graph`, which is changed.
      graph: the graph.
      variables: devices by the name of the operation or input that gives a variable's handle.
    """
    homes = {name: shortened(device) for name, device in variables.items()}
    ops = {node.name: graph.get_operation_by_name(node.name) for node in body.node}
    where = {node.name: _place(node, ops[node.name], homes) for node in body.node}
    added = type(body)()
    arrived: dict[tuple[str, str], str] = {}  # By the name of a tensor, and its reader's device.
    for (home, reader, *_), tensors in sorted(_crossing(body, ops, where, homes).items()):
        ordered = [tensors[name] for name in sorted(tensors)]
        for tensor in ordered if home == _CONSTANT else ():
            arrived[tensor.name, reader] = _constant(added, tensor.op, reader)
        if home != _CONSTANT and len({_source(tensor) for tensor in ordered}) > 1:
            for name, message in _message(added, ordered, home, reader):
                arrived[name, reader] = message
    for node in body.node if arrived else ():
        for i, name in enumerate(node.input):
            tensor = name if ":" in name else f"{name}:0"
            node.input[i] = arrived.get((tensor, where[node.name]), name)
    body.node.extend(added.node)


def _crossing(
    body: Any, ops: Mapping[str, Any], where: Mapping[str, str], homes: Mapping[str, str]
) -> Mapping[tuple[str, str, int, str], dict[str, Any]]:
    """Returns the tensors that can be packed, by name, grouped by devices, stage and dtype."""
    stages = _stages(body, ops, where, homes)
    routes: dict[tuple[str, str, int, str], dict[str, Any]] = collections.defaultdict(dict)
    for node in body.node:
        for name in node.input:
            source, reader = _operation(name), where[node.name]
            if source not in stages or where[source] == reader:
                continue
            tensor = ops[source].outputs[int(name.partition(":")[2] or 0)]
            if ops[source].type == "Const" and not ops[source].control_inputs:
                routes[_CONSTANT, reader, 0, ""][tensor.name] = tensor
            elif is_small(tensor):
                route = where[source], reader, stages[source], tensor.dtype.name
                routes[route][tensor.name] = tensor
    return routes


def _place(node: Any, op: Any, homes: Mapping[str, str]) -> str:
    """Returns the device of a node, or that of the variable that it uses or is colocated with."""
    # Reading a missing attribute would add it to the node.
    places = node.attr["_class"].list.s if "_class" in node.attr else ()
    beside = [place.decode()[len("loc:@") :] for place in places]
    used = [tensor.op.name for tensor in op.inputs if is_handle(tensor)]
    at = [homes[name] for name in (node.name, *used, *beside) if name in homes]
    return (at or [shortened(node.device)])[0]


def _stages(
    body: Any, ops: Mapping[str, Any], where: Mapping[str, str], homes: Mapping[str, str]
) -> dict[str, int]:
    """Returns the number of messages that each operation waits for, by its name.

    Leaves out operations that a call may skip or that wait for other programs, and all after them.
    """
    stages: dict[str, int] = {}
    for node in in_order(body.node):
        before = [name for name in inputs(node) if name in ops]
        if stages.keys() >= set(before) and not _waits_for_others(ops[node.name], homes):
            steps = [stages[name] + (where[name] != where[node.name]) for name in before]
            stages[node.name] = max(steps, default=0)
    return stages


def _waits_for_others(op: Any, homes: Mapping[str, str]) -> bool:
    """Whether an operation is in a branch or a loop, or has state other than a variable."""
    if op.type in _CONTROL_FLOW:
        return True
    handles = [tensor.op for tensor in op.inputs if is_handle(tensor)]
    if not handles:
        return bool(op.op_def.is_stateful and op.name not in homes and not draws(op))
    return not all(h.name in homes or any(map(is_handle, h.inputs)) for h in handles)


def is_small(tensor: Any) -> bool:
    """Whether a tensor is worth packing: numbers of a known size, up to 128 KiB."""
    dtype = tensor.dtype
    if dtype != dtype.base_dtype or not (dtype.is_floating or dtype.is_integer):
        return False
    return bool(0 < (tensor.shape.num_elements() or 0) * dtype.size <= _MOST_BYTES)


def _source(tensor: Any) -> str:
    """Returns the tensor's name or, for a read that waits for no operation, that of its variable.

    Such reads of one variable have one value, so it is packed only once.
    """
    op = tensor.op
    is_read = op.type == "ReadVariableOp" or (op.type == "Identity" and is_handle(op.inputs[0]))
    return str((op.inputs[0] if is_read and not op.control_inputs else tensor).name)


def _constant(added: Any, op: Any, reader: str) -> str:
    """Adds a copy of a constant on its reader's device, without a message; returns its name."""
    node = added.node.add()
    node.CopyFrom(op.node_def)
    node.attr.pop("_class", None)
    node.name, node.device = f"constant_{len(added.node)}", reader
    return str(node.name)


def _message(
    added: Any, tensors: Sequence[Any], home: str, reader: str
) -> Iterator[tuple[str, str]]:
    """Adds nodes that pack and unpack tensors; yields each tensor's name and its unpacked name."""
    once = {_source(tensor): tensor for tensor in tensors}  # Some have several readers.
    with tf1.Graph().as_default() as graph:
        placeholders = {key: tf1.placeholder(t.dtype, t.shape) for key, t in once.items()}
        with tf1.device(home or None):
            flat = packed([*placeholders.values()])
        with tf1.device(reader or None):
            parts = dict(
                zip(placeholders, unpacked(flat, [t.shape for t in placeholders.values()]))
            )
    names = {placeholder.op.name: once[key].name for key, placeholder in placeholders.items()}
    scope = f"message_{len(added.node)}"
    for node in graph.as_graph_def().node:
        if node.name not in names:
            new = added.node.add()
            new.CopyFrom(node)
            new.name = f"{scope}/{node.name}"
            new.input[:] = [names.get(name, f"{scope}/{name}") for name in node.input]
    for tensor in tensors:
        yield tensor.name, f"{scope}/{parts[_source(tensor)].op.name}"


def _operation(name: str) -> str:
    """Returns the name of the operation of an input such as "read:0"; "" for a control input."""
    return "" if name.startswith("^") else name.partition(":")[0]


def distinct_rows(gradient: Any) -> Any:
    """Returns a sparse gradient with each row once, summed, in order; a tensor unchanged.

    `SparseConditionalAccumulator` expects such gradients. If a gradient has a row twice, it may add
    the gradients of the row instead of averaging them, depending on which gradient arrives first.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    order = tf.argsort(rows)
    return tf.IndexedSlices(tf.gather(sums, order), tf.gather(rows, order), gradient.dense_shape)
