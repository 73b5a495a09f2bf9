"""Finds the task of each operation of a graph, by the device that the program gave it."""

from __future__ import annotations

import functools
from typing import Any, Callable

from compat._tensorflow import private, tf1

_COLOCATED = "loc:@"


class Homes:
    """The tasks that devices of a graph name, such as "/job:ps/task:1".

    A session in this process has no other tasks, so `note` removes the task from each device.

    Args:
      own_task: returns the task of this process; "" outside of a cluster.
    """

    def __init__(self, own_task: Callable[[], str]) -> None:
        self._own_task = own_task
        self._tasks: dict[str, str] = {}  # By the name of the operation.

    def note(self, op: Any, is_local: bool) -> None:
        """Records the task of a new operation, and removes the task from its device.

        An operation that `is_local` has no task, whatever its device and colocations are.
        """
        task, device = _split(op.device, self._own_task())
        if is_local:
            self._tasks[op.name] = ""
        elif task:
            self._tasks[op.name] = task
        if task:
            private.set_device(op, device)

    def of(self, op: Any) -> str:
        """Returns the task of an operation, or of one that it is colocated with; "" for none."""
        seen = set()
        while op.name not in self._tasks and op.name not in seen:
            seen.add(op.name)
            groups = [name.decode() for name in _groups(op)]
            others = [name[len(_COLOCATED) :] for name in groups if name.startswith(_COLOCATED)]
            if not others or others[0] == op.name:
                return ""
            op = op.graph.get_operation_by_name(others[0])
        return self._tasks.get(op.name, "")


def _groups(op: Any) -> list[bytes]:
    """Returns the colocation groups of an operation, without its own."""
    try:
        return list(op.get_attr("_class"))
    except ValueError:
        return []


@functools.lru_cache(maxsize=None)
def _split(device: str, own_task: str) -> tuple[str, str]:
    """Returns the task that a device names, and the device without it.

    Of a job without a task, TensorFlow 1.x chooses the task that runs the session, or the first.
    """
    if "/job:" not in device:
        return "", device
    spec = tf1.DeviceSpec.from_string(device)
    task = f"/job:{spec.job}/replica:0/task:{spec.task or 0}"
    if spec.task is None and own_task.startswith(f"/job:{spec.job}/"):
        task = own_task
    inside = {"device_type": spec.device_type, "device_index": spec.device_index}
    return task, tf1.DeviceSpec(**inside).to_string() if spec.device_type else ""


def task_device(op: Any) -> str:
    """Returns the device of an operation, with its task if `Homes.note` has recorded one."""
    known = getattr(op.graph, "compat_parts", None)
    task = known.homes.of(op) if known is not None else ""
    return f"{task}{op.device}" if task else str(op.device)
