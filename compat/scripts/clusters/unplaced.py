"""Places variables without a device on the task whose name sorts first, as TensorFlow 1.x does.

TensorFlow 2 places them on the task that runs the session. Each worker would have variables of its
own, and all workers but the chief would wait forever for initial values.
"""

from __future__ import annotations

import weakref
from typing import Any, Iterable

from compat._tensorflow import private, tf1
from compat.runtime.graphs.dependence import VARIABLES, holds_state, shared_name

# Resources that programs share. Tables have a shared name even if the program gives none.
_SHARED = ("Queue", "QueueV2", "Accumulator", "Barrier")

# For each graph: its version and its number of operations at the last call of `place`.
_seen: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()


def place(graph: Any, devices: Iterable[Any]) -> None:
    """Places variables and shared queues without a task on the task whose name sorts first.

    Operations that a session has run are not moved. Local variables stay on their worker.

    Args:
      graph: The graph that a session is about to run.
      devices: A `DeviceSpec` for each task that the sessions of the graph see; at least one.
    """
    version, known = _seen.get(graph, (-1, 0))
    if version == graph.version:
        return
    operations = graph.get_operations()
    _seen[graph] = graph.version, len(operations)
    with graph.as_default():
        local = {variable.op.name for variable in tf1.local_variables()}
    first = min(devices, key=lambda device: str(device.to_string()))
    for op in operations[known:]:
        if op.name not in local and _is_shared(op) and not _is_placed(op):
            wanted = tf1.DeviceSpec.from_string(op.device)
            private.set_device(op, first.make_merged_spec(wanted).to_string())


def _is_shared(op: Any) -> bool:
    if op.type in VARIABLES:
        return True
    return op.type.endswith(_SHARED) and holds_state(op) and shared_name(op) != ""


def _is_placed(op: Any) -> bool:
    """Returns whether an operation has a task, is colocated with another, or is not for a CPU."""
    device = tf1.DeviceSpec.from_string(op.device)
    own_group = [f"loc:@{op.name}".encode()]
    elsewhere = device.job or device.device_type not in (None, "CPU")
    return bool(elsewhere) or op.colocation_groups() != own_group
