"""What the processes of a run tell those that they start: the names of environment variables."""

from __future__ import annotations

# Set where tasks may be on other machines.
ALLOW_NETWORK = "COMPAT_RUN_ALLOW_NETWORK"
# JSON: how many tasks each job has, where one command has started all.
COUNTS = "COMPAT_RUN_CLUSTER"
# JSON: where the script's hosts are, by host:port.
HOSTS = "COMPAT_RUN_HOSTS"
# Set in a process that runs under `compat run` already.
INSIDE = "COMPAT_RUN_INSIDE"
# JSON: the options of `compat run` for the Python processes that a script starts.
OPTIONS = "COMPAT_RUN_OPTIONS"
# The file with the ports that the processes of a run have agreed on.
PORTS = "COMPAT_RUN_PORTS"
# Set where there is a record of the run, and parameter servers are to end by themselves.
TRACK = "COMPAT_RUN_TRACK"
