r"""Computes A^n + B^n in one process, or with each power on its own worker.

With two workers on this machine, which this command starts and stops:

    python -m experiments.classics.matpow --strategy=workers --n=4 --size=100

With two running workers, started by `python -m compat serve` with the same --cluster_spec:

    python -m experiments.classics.matpow --strategy=workers \
        --cluster_spec='worker|pc-01:2500;pc-02:2501' --allow_network
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from typing import Any, Callable, Mapping

import numpy as np
from absl import flags

from compat import select_runtime, tf1
from compat.cluster import access, proxies
from compat.cluster.address import split_address
from compat.cluster.environment import parse_cluster_spec
from compat.cluster.liveness import diagnosis, watchdog
from compat.cluster.liveness.monitor import Monitor, connection_checks
from compat.cluster.ports import reserve
from compat.cluster.spec import ClusterSpec, Task, checked_cluster
from compat.errors import PeerError, UserError
from compat.processes.group import Command, ProcessGroup
from experiments.classics.calculations import matrix_powers as powers
from experiments.launching import command_line, signals
from experiments.settings.base import ALLOW_NETWORK

_RELATIVE_ERROR = 1e-9
_TASKS = [Task("worker", 0), Task("worker", 1)]
_LOST = "start it again, and then this program"


flags.DEFINE_enum("strategy", "local", ("local", "workers"), "One process, or two workers.")
flags.DEFINE_enum(
    "runtime",
    "auto",
    ("auto", "legacy", "modern"),
    "legacy: a graph and a session; modern: a tf.function; auto: modern if available.",
)
flags.DEFINE_integer("n", 4, "Exponent.")
flags.DEFINE_integer("size", None, "Rows and columns; default: those of the files, else 100.")
flags.DEFINE_integer("seed", 0, "Seed of random matrices.")
flags.DEFINE_string("matrix_a", None, "File of matrix A, .npy; default: a random matrix.")
flags.DEFINE_string("matrix_b", None, "File of matrix B, .npy; default: a random matrix.")
flags.DEFINE_string("worker_hosts", None, "Addresses of the workers, host:port,host:port.")
flags.DEFINE_string("cluster_spec", None, "Addresses as 'worker|host:port;host:port'.")
flags.DEFINE_float(
    "timeout", 60.0, "Limit for the workers to start, and for their results, in seconds."
)
flags.DEFINE_bool("allow_network", False, ALLOW_NETWORK)


def main(values: flags.FlagValues) -> int:
    """Runs the computation; returns the exit code."""
    for flag, least in (("n", 1), ("size", 1), ("seed", 0)):
        if values[flag].value is not None and values[flag].value < least:
            raise UserError(f"--{flag}={values[flag].value} is too small; give {least} or more")
    if values.seed > 2**32 - 1:
        raise UserError(f"--seed={values.seed} is out of range; give 0 to {2**32 - 1}")
    if not 0 < values.timeout < float("inf"):
        raise UserError(f"--timeout={values.timeout:g} is out of range; give seconds above 0")
    cluster = _cluster(values)
    paths = {flag: values[flag].value for flag in ("matrix_a", "matrix_b")}
    operands = powers.load(paths, values.size, values.seed)
    expected = _expected(operands, values.n)
    if values.strategy == "workers" and cluster is None:
        return _launch(sys.argv[1:])
    with signals.signals():
        if cluster is not None:
            workers = {task.name: cluster.address_of(task) for task in _TASKS}
            hosts = {split_address(address)[0] for address in workers.values()}
            os.environ.update(proxies.bypass(os.environ, hosts))
            Monitor(connection_checks(workers), values.timeout).wait()
        command_line.load_tensorflow()
        total = _compute(values, operands, cluster)
    error = np.abs(total - expected).max() / (np.abs(expected).max() or 1.0)
    good = bool(error <= _RELATIVE_ERROR)
    size, verdict = len(total), "agrees with NumPy" if good else "DIFFERS FROM NUMPY"
    print(f"A^{values.n} + B^{values.n}, {size} x {size}: {verdict}, relative error {error:.1e}")
    return 0 if good else 1


def _cluster(values: flags.FlagValues) -> ClusterSpec | None:
    """Returns the cluster of workers that are running already; None if no flag names them."""
    given = [flag for flag in ("worker_hosts", "cluster_spec") if values[flag].value is not None]
    if not given:
        return None
    if len(given) > 1:
        raise UserError("--worker_hosts and --cluster_spec both name the workers; give one of them")
    text = values[given[0]].value
    if values.strategy == "local":
        raise UserError(f"--{given[0]}={text} names workers; add --strategy=workers, or leave it")
    if given == ["cluster_spec"]:
        cluster = parse_cluster_spec(text)
    else:
        cluster = checked_cluster({"worker": [host.strip() for host in text.split(",")]})
    for task in _TASKS:
        if task.job not in cluster.jobs or task.index not in cluster.task_indices(task.job):
            raise UserError(
                f"--{given[0]}={text} lacks {task.name}, expected two workers; "
                "name them as in --worker_hosts=pc-01:2500,pc-02:2501"
            )
    access.check_allowed(access.cluster_hosts(cluster), values.allow_network, say=print)
    return cluster


def _expected(operands: dict[str, np.ndarray], n: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        powers = [np.linalg.matrix_power(matrix, n) for matrix in operands.values()]
        total: np.ndarray = powers[0] + powers[1]
    if not np.isfinite(total).all():
        raise UserError(
            f"--n={n} is too large for these matrices, whose power is beyond float64; "
            "use a smaller --n, or divide the matrices by their largest eigenvalue"
        )
    return total


def _launch(argv: list[str]) -> int:
    """Starts two workers, and this program again as their client; returns the exit code."""
    with contextlib.ExitStack() as reserved:
        ports = [reserved.enter_context(reserve()) for _ in _TASKS]
        spec = "--cluster_spec=worker|" + ";".join(port.address for port in ports)
        commands = []
        for task, port in zip(_TASKS, ports):
            serve = ("compat", "serve", spec, f"--job_name={task.job}", f"--task_id={task.index}")
            env, pass_fds = port.pass_to_child()
            env = {"PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **env}
            name = f"{task.job} {task.index}"
            commands.append(Command(name, (sys.executable, "-m", *serve), env, pass_fds))
        client = (sys.executable, "-m", "experiments.classics.matpow", *argv, spec)
        servers = [command.name for command in commands]
        commands.append(Command("client", client, {"PYTHONUNBUFFERED": "1"}))
        with ProcessGroup(commands, servers=servers) as group:
            reserved.close()  # The workers hold their ports from here on.
            return group.wait()


def _compute(
    values: flags.FlagValues, operands: dict[str, np.ndarray], cluster: ClusterSpec | None
) -> np.ndarray:
    """Computes in this process and, with a cluster, on two workers; returns the last result."""
    runtime = select_runtime(values.runtime)
    print(f"runtime: {runtime.name}")
    run = powers.run_modern if runtime.has_coordinator else powers.run_legacy
    result = watchdog.run_with_watchdog(lambda: run(operands, values.n, powers.HERE), lambda: None)
    print(f"single-node time: {result.seconds * 1000:.2f} ms")
    if cluster is not None:
        workers = {task.name: cluster.address_of(task) for task in _TASKS}

        def run_on_workers() -> powers.Result:
            if not runtime.has_coordinator:
                target = "grpc://" + cluster.address_of(_TASKS[0])
                return powers.run_legacy(operands, values.n, list(workers), target)
            powers.connect(workers)
            return powers.run_modern(operands, values.n, list(workers))

        result = _guarded(run_on_workers, cluster, values.timeout)
        print(f"multi-node time:  {result.seconds * 1000:.2f} ms")
    _print_table(result.devices)
    return result.total


def _guarded(compute: Callable[[], Any], cluster: ClusterSpec, timeout: float) -> Any:
    """Returns the result of `compute`; raises if a worker is lost or the time is over."""
    hosts = ";".join(cluster.address_of(task) for task in _TASKS)
    deadline = time.monotonic() + timeout

    def check() -> None:
        lost = diagnosis.lost_task(_TASKS, cluster, _LOST)
        if lost is None and time.monotonic() > deadline:
            lost = PeerError(
                f"no result from the workers {hosts} within {timeout:g} s; check that both are "
                "running TensorFlow servers, or give large matrices a longer --timeout"
            )
        if lost is not None:
            raise lost

    try:
        return watchdog.run_with_watchdog(compute, check)
    except tf1.errors.InvalidArgumentError as error:
        if "device" not in str(error):
            raise
        raise UserError(
            f"the server at {hosts.split(';')[0]} does not know both workers, expected the "
            f"cluster that was named here; start each with --cluster_spec='worker|{hosts}'"
        ) from error
    except Exception as error:
        lost = diagnosis.peer_error(error, cluster, _LOST)
        if lost is None:
            raise
        raise lost from error


def _print_table(devices: Mapping[str, str]) -> None:
    """Prints the devices of the operations, one line for all operations of a matrix."""
    rows = []
    groups = itertools.groupby(devices.items(), lambda item: (item[0].split("/")[0], item[1]))
    for (_, device), group in groups:
        names = [name for name, _ in group]
        rows.append((names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}", device))
    width = max(len(name) for name, _ in rows)
    for name, device in [("operation", "device"), *rows]:
        print(f"{name:<{width}}  {device}")


if __name__ == "__main__":
    command_line.run(main)
