"""Stores short texts on the servers of a cluster, which answer for busy tasks as well."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from compat._tensorflow import tf1
from compat.cluster.liveness.watchdog import connected
from compat.cluster.roles import chief_task
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import PeerError

ANSWER_SECS = 20.0  # Time for a server to answer.
# A filter that no task passes, so that the session does not wait for other tasks of the cluster,
# which may be lost or belong to another cluster.
_NOBODY = "/job:nobody"


def place(cluster: ClusterSpec) -> tuple[str, Task]:
    """Returns the server for shared entries: the first parameter server, else the chief."""
    task = chief_task(cluster)
    if "ps" in cluster.jobs:
        task = Task("ps", cluster.task_indices("ps")[0])
    return "grpc://" + cluster.address_of(task), task


def read(target: str, task: Task, key: str) -> str | None:
    """Returns the value of an entry on the server of `task` at `target`; None if there is none.

    Raises `PeerError` if the task does not answer, `tf.errors.OpError` for another task's server.
    """
    try:
        with session(target, task.name) as opened:
            value: bytes = opened.run(_entry(key).read_value())
    except (tf1.errors.FailedPreconditionError, tf1.errors.NotFoundError):
        return None
    except tf1.errors.DeadlineExceededError as error:
        address = target[len("grpc://") :]
        raise PeerError(f"{task.name} at {address} does not answer; start it again") from error
    return value.decode()


def write(target: str, task: Task, key: str, value: str) -> None:
    """Sets the value of an entry on the server of `task` at `target`."""
    with session(target, task.name) as opened:
        opened.run(_entry(key).assign(value))


def _entry(key: str) -> Any:
    """Returns the variable that stores an entry on the current server, in no collection."""
    return tf1.Variable("", name=key, trainable=False, collections=[], use_resource=True)


@contextlib.contextmanager
def session(target: str, device: str, patience: float = ANSWER_SECS) -> Iterator[tf1.Session]:
    """Opens a session on one task's server alone.

    A call fails after `patience` seconds, or never if `patience` is 0.
    """
    options = tf1.ConfigProto(
        device_filters=[_NOBODY], operation_timeout_in_ms=int(1000 * patience)
    )
    graph = tf1.Graph()
    graph.compat_is_run_by_server = True  # On the modern runtime, also for this process's server.
    with graph.as_default(), tf1.device(f"{device}/cpu:0"), connected(
        target, graph, options
    ) as opened:
        yield opened
