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
from compat.scripts.cluster.distributed import hosts_of, say

_REMEDY = "add --allow_network after `compat run`, or --local for a cluster on this machine"


def install() -> None:
    """Patches the servers of this process."""
    original = tf1.train.Server.__init__

    @functools.wraps(original)
    def init(self: Any, server_or_cluster_def: Any, *args: Any, **kwargs: Any) -> None:
        definition = getattr(server_or_cluster_def, "cluster", server_or_cluster_def)
        hosts = [host.strip("[]") for host in hosts_of(tf1.train.ClusterSpec(definition))]
        allowed = bool(os.environ.get(environment.ALLOW_NETWORK))
        access.check_allowed(hosts, allowed, remedy=_REMEDY, say=say)
        original(self, server_or_cluster_def, *args, **kwargs)

    tf1.train.Server.__init__ = init
