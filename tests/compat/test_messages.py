"""How many tensors a step gives from one device to another, alone and in a chain of copies."""

from __future__ import annotations

from typing import Any

import pytest

from compat._tensorflow import tf, tf1
from compat.runtime.graphs.chain import Chain
from compat.runtime.graphs.dependence import Dependence
from compat.runtime.graphs.device_placement import shortened
from compat.runtime.graphs.homes import Homes
from compat.runtime.graphs.packing import pack_messages
from compat.runtime.graphs.part import Part

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def stores(node: Any) -> bool:
    """Whether a node is the handle of a variable."""
    return node.op in ("VariableV2", "VarHandleOp")


def step(use_resource: bool) -> tuple[Any, Any, Any]:
    """Returns what is fed, a loss and an update of four variables and a global step."""
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device=WORKER)):
        fed = tf1.placeholder(tf.float32, [None, 3])
        kernels = [tf1.get_variable(name, [3, 3], use_resource=use_resource) for name in ("w", "v")]
        biases = [tf1.get_variable(name, [3], use_resource=use_resource) for name in ("b", "c")]
        hidden = fed
        for kernel, bias in zip(kernels, biases):
            hidden = tf.matmul(hidden, kernel) + bias
        loss = tf.reduce_sum(hidden)
        global_step = tf1.train.get_or_create_global_step()
        update = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step)
    return fed, loss, update


def crossing(nodes: Any) -> set[tuple[str, str]]:
    """Returns what is given from one device to another, with the other."""
    by_name = {node.name: node for node in nodes}

    def where(node: Any) -> str:
        """What uses a variable is where that is."""
        used = [by_name[name.partition(":")[0]] for name in node.input if name[0] != "^"]
        stored = [*filter(stores, used)]
        return shortened((stored or [node])[0].device)

    inputs = [(name, node) for node in nodes for name in node.input]
    given = {name: where(by_name[name.lstrip("^").partition(":")[0]]) for name, _ in inputs}
    return {(name, where(reader)) for name, reader in inputs if given[name] != where(reader)}


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_step_reads_by_one_message_and_sends_another(use_resource: bool) -> None:
    with tf1.Graph().as_default() as graph:
        step(use_resource)
        described = graph.as_graph_def()
        needed = tf1.graph_util.extract_sub_graph(described, ["GradientDescent"])
        stored = {node.name: PS for node in filter(stores, needed.node)}
        before = crossing(needed.node)
        pack_messages(needed, graph, stored)
    messages = crossing(needed.node)
    assert len(before) >= 8
    assert len(messages) == 2, messages


@pytest.mark.parametrize("use_resource", [False, True])
def test_copies_of_a_step_send_nothing_more(use_resource: bool) -> None:
    with tf1.Graph().as_default() as graph:
        fed, loss, update = step(use_resource)
        chain = Chain(graph, [fed], [loss], [update], fails_in_order=True)
        copies = chain.copies(4)
        names = [op.name for _, operations in copies for op in operations]
        needed = tf1.graph_util.extract_sub_graph(graph.as_graph_def(), names)
        messages = crossing(needed.node)
    assert len(messages) == 2 * 4, messages


def test_what_waits_for_a_message_is_no_part_of_it() -> None:
    with tf1.Graph().as_default() as graph:
        with tf1.device(PS):
            first, second = tf1.get_variable("first", [2]), tf1.get_variable("second", [2])
            one, two = tf.identity(first), tf.identity(second)
        with tf1.device(WORKER):
            there = tf.sqrt(one) * two
        with tf1.device(PS):
            back = tf.sqrt(there)
        with tf1.device(WORKER):
            end = tf.add(back, two, name="end")
        described = tf1.graph_util.extract_sub_graph(graph.as_graph_def(), [end.op.name])
        pack_messages(described, graph, {"first": PS, "second": PS})
        sorted_nodes = tf1.graph_util.extract_sub_graph(described, ["end"])
        with tf1.Graph().as_default():
            tf1.import_graph_def(sorted_nodes, name="")  # It has no circle.
    assert len(crossing(described.node)) == 3


def test_a_constant_that_waits_for_an_update_still_does() -> None:
    """Such as the 1 that is added to a global step which is not on the variables' server."""
    with tf1.Graph().as_default() as graph:
        with tf1.device(PS):
            variable = tf1.get_variable("variable", [2])
            update = variable.assign_add([1.0, 1.0])
            with tf.control_dependencies([update]):
                one = tf.constant(1.0)
        with tf1.device(WORKER):
            end = tf.add(one, 1.0, name="end")
        described = tf1.graph_util.extract_sub_graph(graph.as_graph_def(), [end.op.name])
        pack_messages(described, graph, {"variable": PS})
    needed = tf1.graph_util.extract_sub_graph(described, ["end"])
    assert update.op.name in {node.name for node in needed.node}


def test_what_may_wait_for_others_is_no_part_of_a_message() -> None:
    with tf1.Graph().as_default() as graph:
        with tf1.device(PS):
            variable = tf1.get_variable("variable", [2])
            queue = tf1.FIFOQueue(1, [tf.float32], [[2]])
            taken, read = queue.dequeue(), tf.identity(variable)
        with tf1.device(WORKER):
            end = tf.add(tf.sqrt(taken), tf.sqrt(read), name="end")
        described = tf1.graph_util.extract_sub_graph(graph.as_graph_def(), [end.op.name])
        pack_messages(described, graph, {"variable": PS})
    assert not [node.name for node in described.node if node.name.startswith("message")]


@pytest.mark.parametrize("seed", [None, 3])
def test_a_server_draws_the_initial_values_of_its_variables(seed: int | None) -> None:
    """A large table is in no message, and takes no memory of the worker."""
    with tf1.Graph().as_default() as graph:
        with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device=WORKER)):
            initializer = tf1.random_normal_initializer(seed=seed)
            table = tf1.get_variable("table", [100, 64], initializer=initializer, use_resource=True)

        def own_task() -> str:
            return "/job:worker/replica:0/task:0"

        dependence = Dependence(graph, Homes(own_task), own_task)
        dependence.update()
        part = Part(graph, dependence, [], [table.initializer], [], lambda op, node: None)
    assert not part.edges
    assert len(part.counters) == (seed is not None)
