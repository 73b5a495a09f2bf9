r"""Workers that count together, by a variable and a queue on a parameter server.

A whole cluster on this machine:

    python -m experiments.shared_queue --num_workers=2 --increments=5

One task of a cluster on several machines, the same command on each but for job and index:

    python -m experiments.shared_queue --job_name=worker --task_index=0 \
        --ps_hosts=pc-01:2222 --worker_hosts=pc-02:2222,pc-03:2222 --allow_network
"""

from __future__ import annotations

import os
import sys

from absl import flags

from compat._tensorflow import startup
from compat.cluster import access
from compat.cluster.roles import role
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError
from experiments.launching import command_line, local_cluster, signals
from experiments.settings.flags import define_allow_network
from experiments.settings.place import place_from_flags

_MOST = 100000


def define() -> None:
    """Defines the flags."""
    f = flags
    f.DEFINE_enum("strategy", "ps", ("ps",), "Parameter servers: there is no other way here.")
    f.DEFINE_enum(
        "runtime",
        "auto",
        ("auto", "legacy", "modern"),
        "Graphs and sessions, ParameterServerStrategy, or the latter where TensorFlow has it.",
    )
    f.DEFINE_integer("increments", 5, "Of each worker; the same for all tasks.")
    f.DEFINE_integer("num_workers", 2, "Workers of a whole cluster on this machine.")
    f.DEFINE_string("job_name", None, "Job of this process: ps or worker.")
    f.DEFINE_integer("task_index", 0, "Index of this process within its job.")
    f.DEFINE_string("ps_hosts", None, "host:port of each parameter server, by commas.")
    f.DEFINE_string("worker_hosts", None, "host:port of each worker, by commas.")
    f.DEFINE_float("rendezvous_timeout", 60.0, "Seconds to wait for other tasks.")
    f.DEFINE_string("run_token", "", "Text that only the tasks of this cluster have.")
    define_allow_network()


flags.disclaim_key_flags()  # So that --help shows them as the program's.
define()


def main(values: flags.FlagValues) -> int:
    """Runs what the flags say; returns the exit code."""
    for flag in ("increments", "num_workers"):
        if not 1 <= values[flag].value <= _MOST:
            raise UserError(f"--{flag}={values[flag].value} is out of range; give 1 to {_MOST}")
    timeout = values.rendezvous_timeout
    if not 0 < timeout < float("inf"):
        raise UserError(
            f"--rendezvous_timeout={timeout:g} is no time to wait; give seconds above 0"
        )
    cluster, task = place_from_flags(values, os.environ.get("TF_CONFIG"))
    if cluster is None or task is None:
        argv = sys.argv[1:]
        return local_cluster.launch_local("experiments.shared_queue", argv, 1, values.num_workers)
    if "chief" in cluster.jobs:
        raise UserError("the cluster has a chief, expected ps and worker; make it a worker")
    # A wrong task is said before TensorFlow loads, and is wrong on either runtime.
    role(task, cluster, "legacy" if values.runtime == "auto" else values.runtime)
    access.check_allowed(access.cluster_hosts(cluster), values.allow_network)
    _count(values, cluster, task)
    return 0


def _count(values: flags.FlagValues, cluster: ClusterSpec, task: Task) -> None:
    command_line.quiet_tensorflow()
    with signals.signals():
        with startup.without_notes():
            from experiments.seeds.counting import Counting

            counting = Counting(
                cluster,
                task,
                values.increments,
                values.runtime,
                values.rendezvous_timeout,
                values.run_token,
                values.allow_network,
            )
        counting.run()


if __name__ == "__main__":
    command_line.run(main)
