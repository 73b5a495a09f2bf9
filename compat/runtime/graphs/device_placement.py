"""The devices of a graph's operations, and the tasks that a session needs for them."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Sequence

from compat._tensorflow import tf1

_NOTHING_TO_DO = ("Const", "NoOp", "Placeholder")


class Placed(NamedTuple):
    """An operation, and where it runs."""

    name: str
    kind: str  # Such as "MatMul".
    device: str  # Such as "/job:ps/task:0"; "" for the task that runs the step.


def operations(
    graph_def: Any, outputs: Sequence[str], variables: Mapping[str, str]
) -> list[Placed]:
    """Returns the operations that outputs such as "add:0" depend on; not constants and inputs.

    An operation that reads or writes a variable runs on the device of that variable, which
    `variables` has by name.
    """
    needed = tf1.graph_util.extract_sub_graph(
        graph_def, sorted({name.partition(":")[0] for name in outputs})
    )
    placed = []
    for node in needed.node:
        if node.op in _NOTHING_TO_DO:
            continue
        inputs = [name.partition(":")[0] for name in node.input if not name.startswith("^")]
        at = [variables[name] for name in [node.name, *inputs] if name in variables]
        placed.append(Placed(node.name, node.op, shortened(at[0] if at else node.device)))
    return sorted(placed)


def filtered(config: Any, own: str, graph: Any) -> Any:
    """Returns a copy of a session's options, with filters for the tasks that the session needs.

    Without filters a session hangs if its chief has ended, or if another worker is lost. The worker
    `own` needs the parameter servers, which also store the queues of replicas, and all other tasks
    that devices in the graph name, as with in-graph replication.
    """
    changed = tf1.ConfigProto()
    if config is not None:
        changed.CopyFrom(config)
    if not changed.device_filters:
        named = {task for task in named_tasks(graph, own) if not task.startswith("/job:ps/")}
        changed.device_filters.extend(["/job:ps", *sorted(named | {own})])
    return changed


def named_tasks(graph: Any, own: str) -> set[str]:
    """Returns the tasks that devices of a graph name, such as "/job:ps/task:0".

    Of a job without a task, as `replica_device_setter` names it, TensorFlow chooses the task `own`
    or the first.
    """
    places = {tf1.DeviceSpec.from_string(op.device) for op in graph.get_operations()}
    return {
        own
        if place.task is None and own.startswith(f"/job:{place.job}/")
        else f"/job:{place.job}/task:{place.task or 0}"
        for place in places
        if place.job is not None
    }


def worker_of(device: str) -> int | None:
    """Returns the index of the worker that a device belongs to, or None."""
    match = re.search(r"/job:worker/replica:\d+/task:(\d+)", device)
    return int(match.group(1)) if match else None


def shortened(device: str) -> str:
    """Returns a device without its replica and first CPU, such as "/job:ps/task:0"."""
    device = re.sub(r"/replica:0|/(device:)?cpu:0$", "", device, flags=re.IGNORECASE)
    return "" if device == "/job:localhost/task:0" else device
