"""A whole cluster in one process, as `tf.test.create_local_cluster` makes it; prints its losses."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf1
from compat.cluster import ports

if TYPE_CHECKING:
    from tests.compat.programs.sessions_in_turn import make_step, monitored, supervised
else:
    from sessions_in_turn import make_step, monitored, supervised


def addresses(count: int) -> list[str]:
    """Returns as many addresses of this machine that are free."""
    with contextlib.ExitStack() as reserved:
        return [reserved.enter_context(ports.reserve()).address for _ in range(count)]


def trained(server: compat.Server, settings: dict[str, Any]) -> list[list[float]]:
    """Returns the losses of two sessions, one of either kind."""
    setter = compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)
    with compat.device(setter):
        compat.get_or_create_global_step()
        step = make_step()
    return [monitored(server, step, settings), supervised(server, step, settings)]


def second_worker(server: compat.Server) -> list[Any]:
    """Returns what the graph of the other worker computes, and on which of the servers."""
    with tf1.Graph().as_default():
        with compat.device(compat.replica_device_setter(cluster=server.cluster)):
            weight = tf1.get_variable("weight", initializer=np.float32(0))
        with tf1.device(server.task.name):
            twice = weight * 2
        supervisor = compat.Supervisor(is_chief=False, logdir=None, global_step=None)
        with supervisor.managed_session(server.target) as session:
            return [float(session.run(twice)), twice.device]


def main(settings: dict[str, Any]) -> None:
    found = addresses(3)
    cluster = {"worker": found[:2], "ps": found[2:]}
    runtime = settings["runtime"]
    # Servers of one process share its threads, so that calls to each other need some of their own.
    options: Any = {"runtime": runtime, "config": tf1.ConfigProto(inter_op_parallelism_threads=8)}
    workers = [compat.Server(cluster, "worker", index, **options) for index in range(2)]
    ps = compat.Server(cluster, "ps", 0, **options)
    joins = threading.Thread(target=ps.join, daemon=True)
    joins.start()
    report: dict[str, Any] = {"losses": trained(workers[0], settings)}
    if runtime == "legacy":
        report["second"] = second_worker(workers[1])
    for worker in workers:
        worker.announce_end()
    joins.join(60)
    report["states"] = [server.state.value for server in [*workers, ps]]
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
