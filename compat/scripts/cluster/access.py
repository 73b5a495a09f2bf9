"""Restricts a script's servers to this machine, unless `--allow_network` is given.

Applies to all servers of the process, also those that an Estimator starts from TF_CONFIG.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from compat._tensorflow import tf1
from compat.cluster import access
from compat.scripts.cluster import environment
from compat.scripts.cluster.distributed import say

_REMEDY = "add --allow_network after `compat run`, or --local for a cluster on this machine"


def install() -> None:
    """Patches the servers of this process."""
    original = tf1.train.Server.__init__

    @functools.wraps(original)
    def init(self: Any, server_or_cluster_def: Any, *args: Any, **kwargs: Any) -> None:
        allowed = bool(os.environ.get(environment.ALLOW_NETWORK))
        hosts = _hosts(server_or_cluster_def)
        access.check_allowed(hosts, allowed, remedy=_REMEDY, say=say)
        original(self, server_or_cluster_def, *args, **kwargs)

    tf1.train.Server.__init__ = init


def _hosts(server_or_cluster_def: Any) -> list[str]:
    """Returns the hosts of a cluster, also for addresses that only TensorFlow accepts."""
    definition = getattr(server_or_cluster_def, "cluster", server_or_cluster_def)
    jobs = tf1.train.ClusterSpec(definition).as_dict().values()
    addresses = (
        address
        for tasks in jobs
        for address in (tasks.values() if isinstance(tasks, dict) else tasks)
    )
    return [address.rpartition(":")[0].strip("[]") for address in addresses]
