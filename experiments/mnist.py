r"""Trains a network on MNIST: in one process, or with parameter servers.

A whole cluster on this machine:

    python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2

One task of a cluster on several machines, the same command on each but for job and index:

    python -m experiments.mnist --strategy=ps --job_name=worker --task_index=0 \
        --ps_hosts=pc-01:2222 --worker_hosts=pc-02:2222,pc-03:2222
"""

from __future__ import annotations

import io
import os
import sys

from absl import app, flags, logging

from compat.cluster_spec import ClusterSpec, Task
from compat.errors import PeerError, UserError
from compat.roles import role
from experiments import datasets, launch, startup, stopping
from experiments.cluster_manager import check_agreement
from experiments.config import Config
from experiments.flags import config_from_flags, define, place_from_flags

define()


def main(argv: list[str]) -> int:
    """Runs what the flags say; returns the exit code."""
    values = flags.FLAGS
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # Who waits says so, also into a file.
    try:
        if len(argv) > 1:
            raise UserError(f"argument {argv[1]!r} is not a flag; flags look like --epochs=20")
        config = config_from_flags(values)
        cluster, task = place_from_flags(values, os.environ.get("TF_CONFIG"))
        if values.strategy == "ps" and cluster is None:
            # What each task would find out for itself, all have to agree on; the last flag counts.
            own = [*sys.argv[1:], f"--logdir={config.logdir}"]
            if config.dataset == "auto":
                own.append(f"--dataset={datasets.load('auto', config.data_dir).name}")
            return launch.launch_local("experiments.mnist", own, values.num_ps, values.num_workers)
        if cluster is not None and task is not None:
            check_agreement(cluster, task, os.environ)
            # A wrong task is said before TensorFlow loads, and is wrong on either runtime.
            role(task, cluster, "legacy" if config.runtime == "auto" else config.runtime)
        return _train(config, cluster, task or Task("worker", 0))
    except (UserError, PeerError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def _train(config: Config, cluster: ClusterSpec | None, task: Task) -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Ours are the lines that matter.
    logging.set_verbosity(logging.ERROR)
    with stopping.signals() as stop:
        try:
            with startup.without_notes():
                from experiments import training
            training.run(config, cluster, task, stop)
        except stopping.Stopped as stopped:
            return stopped.exit_code
    return 0


def parse(argv: list[str]) -> list[str]:
    """Parses the flags; differs from absl in that mistakes take one line, and help is no failure.

    Returns:
      The program and the arguments that are no flags.

    Raises:
      SystemExit: a flag is unknown or malformed, or help was asked for and given.
    """
    try:
        rest: list[str] = flags.FLAGS(argv)
    except flags.Error as error:
        reason = " ".join(str(error).split())
        print(f"error: {reason}; --help lists the flags", file=sys.stderr, flush=True)
        sys.exit(UserError.exit_code)
    except SystemExit:
        sys.exit(0)
    return rest


if __name__ == "__main__":
    app.run(main, flags_parser=parse)
