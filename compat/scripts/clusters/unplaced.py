"""Stores what a program places nowhere where TensorFlow 1.x does: on the first task by name.

Since TensorFlow 2 it is with the task that runs the session. There each worker has variables of its
own, and those that are not the chief wait forever for their initial values.
"""

from __future__ import annotations

import weakref
from typing import Any, Iterable

from compat._tensorflow import private, tf1
from compat.runtime.graphs.dependence import VARIABLES, holds_state, shared_name

# Where programs meet. Tables have a shared name without being asked for one.
_SHARED = ("Queue", "QueueV2", "Accumulator", "Barrier")

# Of each graph, its version and the number of its operations when it was last looked at.
_seen: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()


def place(graph: Any, devices: Iterable[Any]) -> None:
    """Gives variables, and queues that have a shared name, a task if they have none.

    Operations that a session has run stay where they are; local variables stay with their worker.

    Args:
      graph: that a session is about to run.
      devices: a `DeviceSpec` of each task that its sessions see, at least of one.
    """
    version, seen = _seen.get(graph, (-1, 0))
    if version == graph.version:
        return
    operations = graph.get_operations()
    _seen[graph] = graph.version, len(operations)
    with graph.as_default():
        local = {variable.op.name for variable in tf1.local_variables()}
    first = min(devices, key=lambda device: str(device.to_string()))
    for op in operations[seen:]:
        if op.name not in local and _is_shared(op) and not _is_placed(op):
            own = tf1.DeviceSpec.from_string(op.device)
            private.set_device(op, first.make_merged_spec(own).to_string())


def _is_shared(op: Any) -> bool:
    if op.type in VARIABLES:
        return True
    return op.type.endswith(_SHARED) and holds_state(op) and shared_name(op) != ""


def _is_placed(op: Any) -> bool:
    """Whether an operation has a task, is to be with another one, or is not for a CPU."""
    device = tf1.DeviceSpec.from_string(op.device)
    own = [f"loc:@{op.name}".encode()]
    elsewhere = device.job or device.device_type not in (None, "CPU")
    return bool(elsewhere) or op.colocation_groups() != own
