r"""Workers that share a counter and a queue on a parameter server.

With a whole cluster on this machine:

    python -m experiments.classics.shared_queue --num_workers=2 --increments=5

As one task of a cluster on several machines; job and index differ for each task:

    python -m experiments.classics.shared_queue --job_name=worker --task_index=0 \
        --ps_hosts=pc-01:2222 --worker_hosts=pc-02:2222,pc-03:2222 --allow_network
"""

from __future__ import annotations

import os
import sys
from typing import Callable

from absl import flags

import compat
from compat.cluster import access
from compat.cluster.roles import role
from compat.errors import UserError
from compat.runtime.registry import has_coordinator
from experiments.launching import command_line, launcher, missing_task, signals
from experiments.settings.flags import define_task_flags
from experiments.settings.place import is_on_default_ports, place_from_flags

_MOST = 100000

flags.DEFINE_enum("strategy", "ps", ("ps",), "Only parameter servers are supported.")
flags.DEFINE_integer("increments", 5, "Increments of each worker; the same for all tasks.")
define_task_flags("runtime", "num_workers", "rendezvous_timeout", "run_token", "allow_network")


def main(values: flags.FlagValues) -> int:
    """Runs the task or the cluster; returns the exit code."""
    for flag in ("increments", "num_workers"):
        if not 1 <= values[flag].value <= _MOST:
            raise UserError(f"--{flag}={values[flag].value} is out of range; give 1 to {_MOST}")
    timeout = values.rendezvous_timeout
    if not 0 < timeout < float("inf"):
        raise UserError(f"--rendezvous_timeout={timeout:g} is out of range; give seconds above 0")
    cluster, task = place_from_flags(values, os.environ.get("TF_CONFIG"))
    if cluster is None or task is None:
        argv = sys.argv[1:]
        return launcher.launch_local(
            "experiments.classics.shared_queue", argv, 1, values.num_workers
        )
    if "chief" in cluster.jobs:
        raise UserError("the cluster has a chief, expected ps and worker; make it a worker")
    # Raises if the cluster cannot have such a task, before TensorFlow is loaded.
    role(task, cluster, has_coordinator(values.runtime))
    access.check_allowed(access.cluster_hosts(cluster), values.allow_network)
    say: Callable[[str], None] = print
    if is_on_default_ports(values, os.environ.get("TF_CONFIG")):
        program = launcher.this_program()
        say = missing_task.announce(cluster, task, program, sys.argv[1:])
    with signals.signals():
        command_line.load_tensorflow()
        from experiments.classics.calculations.counting import Counting

        server = compat.Server(
            cluster,
            task.job,
            task.index,
            runtime=values.runtime,
            rendezvous_timeout=timeout,
            run_token=values.run_token,
            allow_network=values.allow_network,
            say=say,
        )
        Counting(server, values.increments).run()
    return 0


if __name__ == "__main__":
    command_line.run(main)
