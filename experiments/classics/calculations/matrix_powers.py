"""Computes A^n + B^n with each power on its own device, in a session or a `tf.function`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from compat import tf, tf1
from compat.errors import UserError
from compat.runtime.graphs.session import eagerly


def load(paths: dict[str, str | None], size: int | None, seed: int) -> dict[str, np.ndarray]:
    """Returns the matrices A and B, float64 `[size, size]`.

    A random matrix has entries in [0, 2 / size), so that its largest eigenvalue is about 1, and its
    powers neither overflow nor vanish.

    Args:
      paths: the paths of .npy files for the flags "matrix_a" and "matrix_b"; None for a random
        matrix.
      size: the number of rows; None for that of the files or, without files, 100.
      seed: the seed of random matrices.

    Raises:
      UserError: a file cannot be read, or is not a square matrix of finite numbers of this size.
    """
    given = {flag: _read(flag, path) for flag, path in paths.items() if path is not None}
    for flag, matrix in given.items():
        size = len(matrix) if size is None else size
        if len(matrix) != size:
            raise UserError(
                f"--{flag}={paths[flag]} has {len(matrix)} rows and columns, expected {size}; "
                "give --matrix_a, --matrix_b and --size of one size"
            )
    size = 100 if size is None else size
    random = np.random.RandomState(seed)
    drawn = {flag: random.uniform(0, 2 / size, [size, size]) for flag in paths}
    return {flag[-1].upper(): given.get(flag, drawn[flag]) for flag in paths}


def _read(flag: str, path: str) -> np.ndarray:
    given = f"--{flag}={path}"
    try:
        matrix = np.load(path, allow_pickle=False)
        if not isinstance(matrix, np.ndarray):
            raise ValueError("several arrays")
    except OSError as error:
        reason = error.strerror or "no .npy file"
        raise UserError(f"{given} cannot be read ({reason}); name a .npy file") from None
    except Exception:  # NumPy raises many kinds of errors for broken files.
        reason = "an array of numbers; write it with numpy.save"
        raise UserError(f"{given} is not a .npy file with {reason}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        reason = "expected a square matrix; give one with as many rows as columns"
        raise UserError(f"{given} has shape {list(matrix.shape)}, {reason}")
    if matrix.dtype.kind not in "biuf":
        reason = "expected real numbers; save it as float64"
        raise UserError(f"{given} has elements of type {matrix.dtype}, {reason}")
    matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise UserError(f"{given} has elements that are not finite; replace them")
    return matrix


_CALLS = 3
HERE = ("/job:localhost/task:0", "/job:localhost/task:0")


@dataclass(frozen=True)
class Result:
    """The result, the time and the devices of a computation."""

    total: np.ndarray  # A^n + B^n, float64 `[size, size]`.
    seconds: float  # Time of the fastest call, with the transfer of the sum to this process.
    devices: dict[str, str]  # The device on which each operation ran, such as "A/power_2" or "sum".


def add_powers(variables: Mapping[str, Any], n: int, devices: Sequence[str]) -> dict[str, Any]:
    """Returns the tensors of A^n + B^n by operation name; the last one is "sum".

    The powers of A are on the first device, those of B on the second; if these are the same, the
    powers of B are computed after those of A.
    """
    tensors = {}
    powers: list[Any] = []
    for (name, variable), device in zip(variables.items(), devices):
        before = powers if devices[0] == devices[1] else []
        with tf1.name_scope(name), tf.device(device), tf.control_dependencies(before):
            matrix = power = variable.read_value()
            for exponent in range(2, n + 1):
                power = tf.matmul(power, matrix, name=f"power_{exponent}")
                tensors[f"{name}/power_{exponent}"] = power
            powers.append(power)
    with tf.device(devices[0]):
        tensors["sum"] = tf.add(*powers, name="sum")
    return tensors


def run_legacy(
    matrices: Mapping[str, np.ndarray], n: int, devices: Sequence[str], target: str = ""
) -> Result:
    """Computes A^n + B^n in a graph, in a session with `target`; "" is this process."""
    with tf1.Graph().as_default() as graph:
        variables, feeds = {}, {}
        for (name, matrix), device in zip(matrices.items(), devices):
            with tf.device(device):
                # The matrices are fed, since TensorFlow's optimizer would compute with constants
                # before the session runs.
                initial = tf1.placeholder(tf.float64, matrix.shape)
                variables[name] = tf1.Variable(initial, use_resource=True, trainable=False)
                feeds[initial] = matrix
        tensors = add_powers(variables, n, devices)
        # The filters keep the session from waiting for other tasks of the cluster.
        config = tf1.ConfigProto(device_filters=sorted(set(devices)) if target else [])
        with tf1.Session(target, graph=graph, config=config) as session:
            session.run([variable.initializer for variable in variables.values()], feeds)
            ran = tf1.RunMetadata()
            options = tf1.RunOptions(output_partition_graphs=True)
            session.run(tensors["sum"], options=options, run_metadata=ran)
            seconds, value = _fastest(lambda: session.run(tensors["sum"]))
    placed = {node.name: node.device for part in ran.partition_graphs for node in part.node}
    return Result(value, seconds, {name: placed[name] for name in tensors if name in placed})


def run_modern(matrices: Mapping[str, np.ndarray], n: int, devices: Sequence[str]) -> Result:
    """Computes A^n + B^n in a `tf.function`, on devices that this process is connected to."""
    variables = {}
    with eagerly():
        for (name, matrix), device in zip(matrices.items(), devices):
            with tf.device(device):
                variables[name] = tf.Variable(matrix, trainable=False)
        compute = tf.function(lambda: add_powers(variables, n, devices), autograph=False)
        tensors = compute()
        ran = {name: tensor.backing_device for name, tensor in tensors.items()}
        seconds, value = _fastest(lambda: compute()["sum"].numpy())
    return Result(value, seconds, ran)


def connect(workers: Mapping[str, str]) -> None:
    """Connects the eager runtime of this process to workers, given as "host:port" by task name."""
    for name, address in workers.items():
        # A session waits for the server first. If the eager context waited, it would block Python,
        # with its deadlines and Ctrl-C.
        with tf1.Graph().as_default() as graph, tf.device(name):
            answer = tf.constant(0)
            config = tf1.ConfigProto(device_filters=[name])
            with tf1.Session(f"grpc://{address}", graph=graph, config=config) as session:
                session.run(answer)
    jobs = {"worker": list(workers.values())}
    with eagerly():
        tf.config.experimental_connect_to_cluster(tf1.train.ClusterSpec(jobs), job_name="client")


def _fastest(compute: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Returns the seconds of the fastest of three calls after a first one, and the last result."""
    value = compute()
    times = []
    for _ in range(_CALLS):
        start = time.monotonic()
        value = compute()
        times.append(time.monotonic() - start)
    return min(times), value
