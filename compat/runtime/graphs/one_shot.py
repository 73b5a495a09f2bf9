"""Stores one-shot iterators under a name, by which the functions of several calls share them.

The operation `OneShotIterator` refuses a shared name, so the function of each kind of call would
read the data from the beginning. `IteratorV2` has one, and has to be started.
"""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf, tf1
from compat.runtime.graphs import nodes

KIND = "OneShotIterator"


def started(graph: Any, node: Any) -> Any:
    """Returns a function that starts the iterator of a `OneShotIterator` node.

    The attribute `shared_name` of the node is the name of the iterator, which is on its device.
    """
    described = tf1.GraphDef(versions=graph.graph_def_versions)
    handle = described.node.add()
    handle.CopyFrom(node)
    del handle.input[:]  # What the program makes it wait for.
    give_name(handle)
    data = described.node.add(name=f"{node.name}/data", op="StatefulPartitionedCall")
    data.device = node.device
    data.attr["f"].CopyFrom(node.attr["dataset_factory"])
    data.attr["Tin"].list.SetInParent()
    data.attr["Tout"].list.type.append(tf.variant.as_datatype_enum)
    start = described.node.add(name=f"{node.name}/start", op="MakeIterator", device=node.device)
    start.input.extend([data.name, handle.name])
    nodes.add_functions(described, graph)
    nodes.register_functions(described)

    def run() -> Any:
        (done,) = tf1.import_graph_def(described, {}, [start.name], name="")
        with tf.control_dependencies([done]):
            return tf.constant(0)

    return tf1.wrap_function(run, [])


def give_name(node: Any) -> None:
    """Turns a `OneShotIterator` node into an `IteratorV2` node, which finds it by its name."""
    node.op = "IteratorV2"
    del node.attr["dataset_factory"]
