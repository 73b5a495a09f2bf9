"""The task that a program of this folder is, or none."""

from __future__ import annotations

import sys
from typing import Any

import compat


def place(settings: dict[str, Any]) -> tuple[compat.Server | None, Any]:
    """Selects the runtime; returns the server and the setter of a task that trains, or None twice.

    A task that serves others does so, and the program exits.
    """
    compat.select_runtime(settings["runtime"])
    if "cluster" not in settings:
        return None, None
    server = compat.Server(settings["cluster"], settings["job"], settings["index"])
    if server.serves:
        server.join()
        sys.exit()
    setter = compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)
    return server, setter
