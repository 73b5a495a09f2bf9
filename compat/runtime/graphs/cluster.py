"""Connects this process with the servers that store the variables of its graphs."""

from __future__ import annotations

import logging
import threading
from typing import Any, ContextManager, Mapping

from compat._tensorflow import startup, tf, tf1
from compat.cluster import ports
from compat.cluster.liveness import turns
from compat.errors import UserError
from compat.runtime.graphs import session

_OWN_JOB = "program"


def sees_variables_of_others() -> bool:
    """Whether a process finds a server's variables that other processes have created.

    TensorFlow 2.4 to 2.7 keep the variables of each process apart; 2.8 and later, which this
    recognizes by a function that 2.8 added, do not.
    """
    return hasattr(tf.config.experimental, "enable_op_determinism")


class Membership(session.Cluster):
    """This task of a cluster, which connects with other tasks once a session needs them.

    Args:
      cluster: addresses by job, as in a `ClusterSpec`.
      job: the job of this task.
      index: the number of this task in its job.

    Raises:
      UserError: this TensorFlow cannot have several programs in a cluster.
    """

    def __init__(self, cluster: Mapping[str, Any], job: str, index: int) -> None:
        programs = sum(len(tasks) for name, tasks in cluster.items() if name != "ps")
        if programs > 1 and not sees_variables_of_others():
            raise UserError(
                f"the cluster has {programs} tasks that train, and before TensorFlow 2.8 the "
                "modern runtime has variables for one only; use --runtime=legacy, or a newer "
                "TensorFlow"
            )
        super().__init__(f"/job:{job}/replica:0/task:{index}")
        self._is_alone = programs == 1
        self._spec = tf1.train.ClusterSpec(dict(cluster))
        self._host = self._spec.task_address(job, index).rpartition(":")[0]
        self._lock = threading.Lock()
        self._connected: set[str] = set()

    def connect(self, tasks: set[str]) -> None:
        """Connects with tasks, whose servers have to be running; does so once for each."""
        with self._lock:
            if tasks <= self._connected:
                return
            # This process connects as a task of a job of its own, since the server of this task is
            # one of those that store variables, and serves other tasks too.
            reservation = ports.reserve()
            jobs = {_OWN_JOB: {0: f"{self._host}:{reservation.port}"}}
            for task in sorted(self._connected | tasks):
                place = tf1.DeviceSpec.from_string(task)
                jobs.setdefault(place.job, {})[place.task] = self._address(task)
            handlers = list(logging.root.handlers)
            with self._turns(tasks - self._connected), session.eagerly(), startup.without_notes():
                reservation.release()
                tf.config.experimental_connect_to_cluster(
                    tf1.train.ClusterSpec(jobs), job_name=_OWN_JOB, task_index=0, protocol="grpc"
                )
            # `absl.logging` has added one, which would show each line of TensorFlow's logger again.
            logging.root.handlers[:] = handlers
            self._connected |= tasks
            self.device = f"/job:{_OWN_JOB}/replica:0/task:0/device:CPU:0"

    def _address(self, task: str) -> str:
        place = tf1.DeviceSpec.from_string(task)
        return str(self._spec.task_address(place.job, place.task))

    def _turns(self, tasks: set[str]) -> ContextManager[None]:
        """Keeps other programs from connecting with the same servers.

        A server of TensorFlow without a program creates the state that its programs share, and
        destroys the previous one (`EagerServiceImpl::CreateContext`, 2.21). If two programs are the
        first at the same time, one uses destroyed state, and the server may end with signal 11.
        """
        servers = {task: self._address(task) for task in tasks}
        return turns.taken({} if self._is_alone else servers)
