"""A peer that is lost, as one line that names it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Iterable

from compat._tensorflow import tf1
from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import PeerError
from compat.liveness.rendezvous import Lookout, reason_not_serving, reason_unreachable

if TYPE_CHECKING:
    from compat.server import Server

_TASK = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+)")
# What stands above the reason in what TensorFlow says: of several errors, and where one was seen.
_HEADING = re.compile(r"Graph execution error:|=*|.*From /job:\S+:|\d+ root error\(s\) found\.")
# A task that was killed closes its port some time after the connections of which the error is.
_CLOSING_SECS = 1.0
_REMEDY = "start it again and then this task: training goes on from the last checkpoint"


def _is_lost_peer(error: BaseException) -> bool:
    """Whether an error of TensorFlow is of the kind that a lost peer causes."""
    errors = tf1.errors
    kinds = (errors.UnavailableError, errors.AbortedError, errors.CancelledError)
    # The last is what workers hear that make each update together.
    return isinstance(error, (*kinds, errors.DeadlineExceededError))


def peer_error(
    error: BaseException,
    cluster: ClusterSpec | None,
    remedy: str = _REMEDY,
    own: Task | None = None,
) -> PeerError | None:
    """Returns the `PeerError` that stands behind an error of TensorFlow, or None.

    Args:
      error: what a step or a session raised; of a moment ago, for who was lost may come back.
      cluster: where the lost task is looked up; None means that there are no peers to lose.
      remedy: what the message tells the user to do.
      own: this very task; TensorFlow mentions it, too, for it has noticed.
    """
    if cluster is None or not _is_lost_peer(error):
        return None
    found = [Task(job, int(index)) for job, index in _TASK.findall(str(error))]
    mentioned = [task for task in dict.fromkeys(found) if task != own and _is_in(task, cluster)]
    suspects = mentioned + (_parameter_servers(cluster) or list(all_tasks(cluster)))
    lost = _first_unreachable(suspects, cluster)
    if lost is None:
        time.sleep(_CLOSING_SECS)
        lost = _first_unreachable(suspects, cluster)
    if lost is not None:
        return _error(lost, cluster, remedy)
    what = "a task of the cluster"
    if mentioned:
        task = mentioned[0]
        what = f"{task.name} at {cluster.task_address(task.job, task.index)}, which is back"
    lines = (line.strip() for line in str(error).splitlines())
    reason = next((line for line in lines if not _HEADING.fullmatch(line)), type(error).__name__)
    return PeerError(f"lost {what} ({reason}); {remedy}")


def lost_parameter_server(cluster: ClusterSpec, remedy: str = _REMEDY) -> PeerError | None:
    """Returns the error for the first parameter server that cannot be reached now, or None."""
    return lost_task(_parameter_servers(cluster), cluster, remedy)


class Watch:
    """Called every so often while a call into TensorFlow does not return; raises if it never will.

    A parameter server that refuses connections is lost. A task that does not answer is given time,
    and it is said: it was stopped, or its host or network has gone without a word, and TensorFlow,
    to which nobody says so, may wait without end.

    Args:
      server: of this task; its `while_waiting` is called while one does not answer.
      workers: whether the call needs the workers, too; without one that refuses connections the
        coordinator does by itself.
    """

    def __init__(self, server: Server, workers: bool) -> None:
        self._server, self._workers = server, workers
        self._began = time.monotonic()
        self._lookouts: list[Lookout] = []  # From the first call on: most calls return at once.

    def __call__(self) -> None:
        """Looks after the tasks.

        Raises:
          PeerError: one is lost.
        """
        cluster = self._server.cluster
        servers = _parameter_servers(cluster)
        if not self._lookouts:
            workers = all_tasks(cluster) if self._workers else []
            needed = dict.fromkeys([*servers, *workers])
            self._lookouts = [
                self._server.lookout(task, _reason_silent)
                for task in needed
                if task != self._server.task
            ]
        for task in servers:
            if reason_unreachable(cluster.task_address(task.job, task.index)) == "refused":
                raise _error(task, cluster, _REMEDY)
        for lookout in self._lookouts:  # Each look may take a second.
            lookout.look()
            if lookout.misses:
                self._server.while_waiting(time.monotonic() - self._began)


def _reason_silent(address: str) -> str | None:
    reason = reason_not_serving(address)
    return None if reason == "refused" else reason


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
