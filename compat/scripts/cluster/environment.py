"""Names of the environment variables that the processes of a run pass to their children."""

from __future__ import annotations

# Set if tasks may be on other machines.
ALLOW_NETWORK = "COMPAT_RUN_ALLOW_NETWORK"
# JSON: number of tasks per job, if one command started them all.
COUNTS = "COMPAT_RUN_CLUSTER"
# JSON: real addresses by the script's host:port.
HOSTS = "COMPAT_RUN_HOSTS"
# Set in a process that already runs under `compat run`.
INSIDE = "COMPAT_RUN_INSIDE"
# JSON: the options of `compat run` for the Python processes that a script starts.
OPTIONS = "COMPAT_RUN_OPTIONS"
# The file with the ports that the processes of a run share.
PORTS = "COMPAT_RUN_PORTS"
# Set if the run is tracked, and parameter servers exit when it is over.
TRACK = "COMPAT_RUN_TRACK"
