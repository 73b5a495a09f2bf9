"""Several tensors, or gradients of a row, as one: a small step takes as long as its messages."""

from __future__ import annotations

import collections
from typing import Any, Iterator, Mapping, Sequence

from compat._tensorflow import tf, tf1
from compat.runtime.graphs.device_placement import shortened

# A tensor in a message of several is copied twice more, which of a larger one costs a message.
_MOST_BYTES = 1 << 20


def packed(tensors: Sequence[Any]) -> Any:
    """Returns all elements of tensors of one type, one after another, `[elements]`."""
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)


def unpacked(flat: Any, shapes: Sequence[Any]) -> list[Any]:
    """Returns the tensors of these shapes, known in full, that `packed` has made one."""
    parts = tf.split(flat, [shape.num_elements() for shape in shapes])
    return [tf.reshape(part, shape) for part, shape in zip(parts, shapes)]


def read_as_one(body: Any, graph: Any, handles: Mapping[str, str]) -> None:
    """Makes what is read of the variables of one device for another a single tensor.

    Only of reads that wait for nothing, which have no order, and of variables of up to 1 MiB.

    Args:
      body: the description of operations of `graph`, which is changed.
      graph: the graph.
      handles: devices of variables by the name of the operation or input that gives their handle.
    """
    homes = {name: shortened(device) for name, device in handles.items()}
    # Without those that wait for something: what they read has been written before.
    reads = {
        node.name: homes[_operation(node.input[0])]
        for node in body.node
        if _reads(node, graph) and len(node.input) == 1 and _operation(node.input[0]) in homes
    }
    readers: dict[str, set[str]] = collections.defaultdict(set)
    for node in body.node:
        inputs = [_operation(name) for name in node.input]
        # Asked for, an attribute that is missing would be made.
        places = node.attr["_class"].list.s if "_class" in node.attr else ()
        beside = [place.decode()[len("loc:@") :] for place in places]
        at = [homes[name] for name in (*inputs, *beside) if name in homes]
        for name in reads.keys() & set(inputs):
            readers[name].add((at or [shortened(node.device)])[0])
    messages: dict[tuple[str, str, str], list[Any]] = collections.defaultdict(list)
    for name, home in sorted(reads.items()):
        (tensor,) = graph.get_operation_by_name(name).outputs
        size = (tensor.shape.num_elements() or 0) * tensor.dtype.size
        if 0 < size <= _MOST_BYTES and len(readers[name]) == 1 and home not in readers[name]:
            messages[home, readers[name].pop(), tensor.dtype.name].append(tensor)
    added = type(body)()
    arrived: dict[str, str] = {}
    for (home, reader, _), tensors in sorted(messages.items()):
        if len({tensor.op.inputs[0].name for tensor in tensors}) > 1:
            arrived.update(_message(added, tensors, home, reader))
    for node in body.node if arrived else ():
        inputs = [
            name if name.startswith("^") else arrived.get(_operation(name), name)
            for name in node.input
        ]
        del node.input[:]
        node.input.extend(inputs)
    body.node.extend(added.node)


def _reads(node: Any, graph: Any) -> bool:
    """Whether a node reads a variable: by its handle, or an identity by reference."""
    if node.op != "Identity":
        return bool(node.op == "ReadVariableOp")
    read = graph.get_operation_by_name(node.name).inputs[0].dtype
    return bool(read != read.base_dtype)


def _message(
    added: Any, tensors: Sequence[Any], home: str, reader: str
) -> Iterator[tuple[str, str]]:
    """Adds the nodes that make tensors one; yields the name of each, and that of what arrives."""
    once = {tensor.op.inputs[0].name: tensor for tensor in tensors}  # Some are read repeatedly.
    with tf1.Graph().as_default() as graph:
        given = {key: tf1.placeholder(t.dtype, t.shape) for key, t in once.items()}
        with tf1.device(home or None):
            flat = packed([*given.values()])
        with tf1.device(reader or None):
            parts = dict(zip(given, unpacked(flat, [t.shape for t in given.values()])))
    names = {placeholder.op.name: once[key].op.name for key, placeholder in given.items()}
    scope = f"message_{len(added.node)}"
    for node in graph.as_graph_def().node:
        if node.name not in names:
            new = added.node.add()
            new.CopyFrom(node)
            new.name = f"{scope}/{node.name}"
            new.input[:] = [names.get(name, f"{scope}/{name}") for name in node.input]
    for tensor in tensors:
        yield tensor.op.name, f"{scope}/{parts[tensor.op.inputs[0].name].op.name}"


def _operation(name: str) -> str:
    """Returns the name of the operation that gives an input such as "read:0"; "" if it gives none.

    A control input only waits.
    """
    return "" if name.startswith("^") else name.partition(":")[0]


def distinct_rows(gradient: Any) -> Any:
    """Returns a sparse gradient with the sum of each row once, in their order; a tensor as it is.

    `SparseConditionalAccumulator` expects such. Of others it may add the gradients of a row where
    it should average them, depending on which of them arrives first.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    order = tf.argsort(rows)
    return tf.IndexedSlices(tf.gather(sums, order), tf.gather(rows, order), gradient.dense_shape)
