"""Makes this process the coordinator of a cluster."""

from __future__ import annotations

import ctypes
import functools
import sys
import time
from typing import Any

from compat._tensorflow import private, release, startup, tf, tf1
from compat.cluster import ports
from compat.cluster.liveness import identity, probe
from compat.cluster.liveness.cluster import Cluster
from compat.cluster.roles import Role
from compat.cluster.spec import ClusterSpec

_ASK_SECS = 0.2  # Seconds between two checks for the return of a lost worker.


def connect(server: Cluster) -> Any:
    """Makes this process the coordinator of the cluster; returns its `ClusterCoordinator`."""
    server.wait_for_peers(everybody=True)
    jobs = server.cluster.as_dict()
    reservation = None
    if server.role is Role.SERVE_AND_COORDINATE:
        # A cluster of 2016 has no chief. Worker 0 becomes the chief, on another port.
        reservation = ports.reserve()
        host = server.address.rpartition(":")[0]
        jobs = dict(jobs, chief=[f"{host}:{reservation.port}"])
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf1.train.ClusterSpec(jobs), task_type="chief", task_id=0, rpc_layer="grpc"
    )
    if reservation is not None:
        reservation.release()
    private.keep_functions()
    private.give_back_steps()
    private.run_threads_eagerly()
    with release.quietly(), startup.without_notes():
        strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
        coordinator = _without_destructor(release.coordinator_module().ClusterCoordinator)(strategy)
    private.before_reset(coordinator, functools.partial(_wait_for_workers, server.cluster))
    if server.role is Role.COORDINATE:
        identity.declare(server.target, server.task, server.run)
    _quiet_destructors()
    # This reference is never dropped, because the destructors would report lost peers at exit.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coordinator))
    return coordinator


def _wait_for_workers(cluster: ClusterSpec) -> None:
    """Waits until a lost worker has returned, and all workers answer."""
    workers = [cluster.task_address("worker", i) for i in cluster.task_indices("worker")]
    while any(probe.reason_not_serving(address) for address in workers):
        time.sleep(_ASK_SECS)


def _quiet_destructors() -> None:
    """Suppresses errors of destructors about a lost peer, which has been reported already."""
    before = getattr(sys, "unraisablehook", None)  # Python 3.8 introduced it.
    lost = tf1.errors.OpError

    def hook(failure: Any) -> None:
        if before is not None and not issubclass(failure.exc_type, lost):
            before(failure)

    if before is not None:
        sys.unraisablehook = hook


def _without_destructor(kind: Any) -> Any:
    """Returns the class `kind` without its destructor.

    When Python exits, the destructor would wait for ever for a lost worker.
    """
    return type(kind.__name__, (kind,), {"__del__": lambda self: None})
