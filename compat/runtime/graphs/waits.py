"""Makes a copy of a step wait for the previous copy, with few messages between devices."""

from __future__ import annotations

from typing import Any, Collection, Mapping, Sequence

from compat.runtime.graphs.device_placement import shortened
from compat.runtime.graphs.nodes import in_order, inputs

_READS = ("ReadVariableOp", "Identity", "ResourceGather", "Gather", "GatherV2")


def only_reads(op: Any) -> bool:
    """Whether an operation reads a variable, and changes nothing."""
    return op.type in _READS


def add_waits(
    nodes: Sequence[Any],
    where: Mapping[str, str],
    needed: Mapping[str, set[str]],
    rows: Mapping[str, set[str]],
    barriers: Mapping[str, str],
    messages: Collection[str],
) -> None:
    """Adds control inputs that make nodes wait for the previous copy on the devices they need.

    If one of a node's inputs has waited for a device, the node gets no control input for it.
    Otherwise the node waits for the barrier of the device. A barrier on another device would add a
    message between devices. So if the step already sends a message that has waited for the device
    to the node's own device, the node waits for that message instead.

    Args:
      nodes: the nodes of a copy, which are changed.
      where: the device of each node, by name.
      needed: by the name of a node, the devices that the node waits for.
      rows: by the name of an input of the copy, the devices that the input has waited for.
      barriers: names of the barriers by device.
      messages: names of nodes that pack and unpack messages.
    """
    order = [*in_order(nodes)]
    upstream: dict[str, set[str]] = {}
    bound = set(rows)  # Nodes that wait for rows, or for more than their own device.
    arrivals: dict[tuple[str, str], str] = {}
    for node in order:
        name, waited = node.name, needed.get(node.name, set())
        upstream[name] = waited.union(*(upstream.get(other, ()) for other in inputs(node)))
        if waited - {where[name]} or not bound.isdisjoint(inputs(node)):
            bound.add(name)
        elif name in messages:
            for device in upstream[name]:
                arrivals.setdefault((device, shortened(where[name])), name)
    known = dict(rows)
    for node in order:
        name, before = node.name, [known[n] for n in inputs(node) if n in known]
        # A node that joins branches waits for only one of them.
        is_join = "Merge" in node.op and before
        known[name] = set.intersection(*before) if is_join else set().union(*before)
        waited = needed.get(name, set())
        for device in sorted(waited - known[name]):
            arrival = arrivals.get((device, shortened(where[name]))) if name in bound else None
            node.input.append(f"^{arrival or barriers[device]}")
        known[name] |= waited
