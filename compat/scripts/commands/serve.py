"""`python -m compat serve`: runs a standalone server for clients that connect with grpc://.

python -m compat serve --cluster_spec='worker|h1:2500;h2:2501,ps|h3:2222' --job_name=worker \
        --task_id=0 --allow_network
"""

from __future__ import annotations

import signal
import sys
import threading

from compat._tensorflow import startup, tf1
from compat.cluster import access, ports
from compat.cluster.address import split_address
from compat.cluster.environment import parse_cluster_spec
from compat.errors import Parser


def main(argv: list[str]) -> int:
    """Serves until SIGINT or SIGTERM; returns the exit code."""
    parser = Parser(prog="python -m compat serve", description="A server for grpc:// clients.")
    add = parser.add_argument
    add("--cluster_spec", required=True, help="job|host:port;host:port,job|...")
    add("--job_name", required=True, help="job of this server, such as worker")
    add("--task_id", "--task_index", type=int, default=0, help="default: 0")
    add("--allow_network", action="store_true", help="allow other machines: see docs/security.md")
    options = parser.parse_args(argv)
    cluster = parse_cluster_spec(options.cluster_spec)
    address = cluster.task_address(options.job_name, options.task_id)
    access.check_allowed(access.cluster_hosts(cluster), options.allow_network, say=print)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda signum, frame: stop.set())
    with startup.without_notes():
        from compat.scripts.clusters.distributed import prepare

        ports.release_inherited(split_address(address)[1])
        prepare(cluster, options.job_name, options.task_id)
        _server = tf1.train.Server(
            cluster.as_dict(), job_name=options.job_name, task_index=options.task_id
        )
    name = f"/job:{options.job_name}/task:{options.task_id}"
    # Not `server.target`, which is "localhost" on TensorFlow 1.15, whatever the host.
    print(f"{name} serves at {address}; clients connect to grpc://{address}", flush=True)
    while not stop.wait(0.5):
        pass
    sys.stdout.flush()
    return 0
