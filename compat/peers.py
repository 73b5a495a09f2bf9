"""A peer that is lost, as one line that names it."""

from __future__ import annotations

import re
from typing import Iterable

from compat._tensorflow import tf1
from compat.cluster_spec import ClusterSpec, Task
from compat.errors import PeerError
from compat.rendezvous import reason_unreachable

_TASK = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+)")
_REMEDY = "start it again and then this task: training goes on from the last checkpoint"


def is_lost_peer(error: BaseException) -> bool:
    """Whether an error of TensorFlow is of the kind that a lost peer causes."""
    kinds = (tf1.errors.UnavailableError, tf1.errors.AbortedError, tf1.errors.CancelledError)
    return isinstance(error, kinds)


def peer_error(
    error: BaseException, cluster: ClusterSpec | None, remedy: str = _REMEDY
) -> PeerError | None:
    """Returns the `PeerError` that stands behind an error of TensorFlow, or None.

    Args:
      error: what a step or a session raised.
      cluster: where the lost task is looked up; None means that there are no peers to lose.
      remedy: what the message tells the user to do.
    """
    if cluster is None or not is_lost_peer(error):
        return None
    # The first that is mentioned may be the one that noticed, this very task.
    found = [Task(job, int(index)) for job, index in _TASK.findall(str(error))]
    mentioned = [task for task in dict.fromkeys(found) if _is_in(task, cluster)]
    lost = _first_unreachable(mentioned + _parameter_servers(cluster), cluster)
    if lost is not None or mentioned:
        return _error(lost or mentioned[0], cluster, remedy)
    return PeerError(f"lost a task of the cluster ({str(error).splitlines()[0]}); {remedy}")


def lost_parameter_server(cluster: ClusterSpec, remedy: str = _REMEDY) -> PeerError | None:
    """Returns the error for the first parameter server that cannot be reached now, or None."""
    return lost_task(_parameter_servers(cluster), cluster, remedy)


def lost_task(
    tasks: Iterable[Task], cluster: ClusterSpec, remedy: str = _REMEDY
) -> PeerError | None:
    """Returns the error for the first of `tasks` that cannot be reached now, or None."""
    lost = _first_unreachable(tasks, cluster)
    return None if lost is None else _error(lost, cluster, remedy)


def _parameter_servers(cluster: ClusterSpec) -> list[Task]:
    indices = cluster.task_indices("ps") if "ps" in cluster.jobs else []
    return [Task("ps", index) for index in indices]


def _is_in(task: Task, cluster: ClusterSpec) -> bool:
    return task.job in cluster.jobs and task.index in cluster.task_indices(task.job)


def _first_unreachable(tasks: Iterable[Task], cluster: ClusterSpec) -> Task | None:
    for task in tasks:
        # With time for a packet that gets lost; a task that is gone says so at once.
        address = cluster.task_address(task.job, task.index)
        if reason_unreachable(address, timeout=10.0) is not None:
            return task
    return None


def _error(task: Task, cluster: ClusterSpec, remedy: str) -> PeerError:
    address = cluster.task_address(task.job, task.index)
    return PeerError(f"lost {task.name} at {address}; {remedy}")
