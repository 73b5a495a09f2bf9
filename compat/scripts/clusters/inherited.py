"""Passes the options of `compat run` to child processes, in environment variables.

Python processes that a script starts also run under `compat run`: PYTHONPATH has a folder with a
module `sitecustomize`, which Python imports at startup. It runs the child by `compat run` instead.
"""

from __future__ import annotations

import json
import os
import sys

ALLOW_NETWORK = "COMPAT_RUN_ALLOW_NETWORK"  # Set if tasks may be on other machines.
COUNTS = "COMPAT_RUN_CLUSTER"  # JSON: number of tasks per job, if one command started them all.
HOSTS = "COMPAT_RUN_HOSTS"  # JSON: for each "host:port" in the script, its real address.
OPTIONS = "COMPAT_RUN_OPTIONS"  # JSON: the options of `compat run` for Python processes it starts.
PORTS = "COMPAT_RUN_PORTS"  # The file with the ports that the processes of a run share.
RECORD = "COMPAT_RUN_RECORD"  # The file in which the chief of a tracked cluster names its folder.
TRACK = "COMPAT_RUN_TRACK"  # Set if the run is tracked, and servers exit when it is over.

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def prepare_children(options: list[str]) -> None:
    """Makes every Python process that this one starts run with the same options."""
    root = os.path.abspath(os.path.join(SITE, *[os.pardir] * 4))
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if root not in known:  # The folder of `compat` itself, if it is not installed.
        known.append(root)
    os.environ["PYTHONPATH"] = os.pathsep.join([SITE] + [path for path in known if path != SITE])
    os.environ[OPTIONS] = json.dumps(options)
    if SITE in sys.path:
        sys.path.remove(SITE)
