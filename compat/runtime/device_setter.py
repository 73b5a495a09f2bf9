"""Places variables on parameter servers: the device functions of TensorFlow 1.x."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Callable, Iterable, Sequence

from compat._tensorflow import tf1
from compat.cluster.spec import ClusterSpec
from compat.runtime.graphs.homes import task_device

_FACTOR = 1.5  # Above so many times the mean a parameter server stores too much,
_LEAST = 10_000_000  # if it stores more bytes than these.


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Any:
    """Returns `tf.compat.v1.train.replica_device_setter`, for `with compat.device(...)`.

    Differences: `cluster` may be a `compat.ClusterSpec`; on the modern runtime the same function
    chooses the parameter server of each variable, with `ps_strategy` and `ps_ops` as given.
    `worker_device` has no effect there: the coordinator picks the worker.
    """
    if cluster is not None:
        # A job that is the evaluator's, or empty, is left out; the setter would count it.
        cluster = tf1.train.ClusterSpec(ClusterSpec(cluster).as_dict())
    ps_ops = None if ps_ops is None else list(ps_ops)
    return tf1.train.replica_device_setter(
        ps_tasks, ps_device, worker_device, merge_devices, cluster, ps_ops, ps_strategy
    )


def byte_size_load_fn(op: Any) -> float:
    """Returns the size in bytes of the variable that `op` creates.

    Source: `tf.contrib.training.byte_size_load_fn` of TensorFlow 1.x, which is gone since 2.0.

    Other operations that a device setter places, such as tables and the accumulators of
    `SyncReplicasOptimizer`, count 0.

    Raises:
      ValueError: `op` creates nothing that is stored, or a variable whose shape is not fully
        defined.
    """
    if op.type not in ("Variable", "VariableV2", "VarHandleOp"):
        if any(
            kept.dtype == tf1.resource or kept.dtype.name.endswith("_ref") for kept in op.outputs
        ):
            return 0.0
        raise ValueError(f"operation {op.name} of type {op.type} makes no variable; pass one")
    dtype = tf1.as_dtype(op.get_attr("dtype"))
    shape = tf1.TensorShape(op.get_attr("shape"))
    if not shape.is_fully_defined():
        raise ValueError(f"variable {op.name} has shape {shape}; its size is not known")
    return float(dtype.size * shape.num_elements())


class GreedyLoadBalancingStrategy:
    """Places each variable on the parameter server with the least load so far.

    Source: `tf.contrib.training.GreedyLoadBalancingStrategy` of TensorFlow 1.x.

    Args:
      num_tasks: number of parameter servers.
      load_fn: the load of a variable's operation, such as `byte_size_load_fn`.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float] = byte_size_load_fn) -> None:
        self._load_fn = load_fn
        self._loads: list[float] = [0.0] * num_tasks

    def __call__(self, op: Any) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """Places each variable by a hash of its name: the same on every task, in any order of creation.

    Source: `tf.contrib.training.RandomStrategy` of TensorFlow 1.x, whose hash this is.
    """

    def __init__(self, num_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_tasks
        self._seed = seed

    def __call__(self, op: Any) -> int:
        key = f"{op.name}_{self._seed}".encode()
        return int(hashlib.md5(key).hexdigest(), 16) % self._num_tasks  # noqa: S324 - Contrib's.


def stored_bytes(variables: Iterable[Any], servers: int) -> list[int]:
    """Returns the bytes of the variables on each parameter server.

    A variable of unknown shape counts 0, a string the size of a pointer.
    """
    sizes = [0] * servers
    for variable in variables:
        task = re.search(r"/job:ps/.*task:(\d+)", task_device(variable.op))
        if task and int(task.group(1)) < servers:
            size = (variable.shape.num_elements() or 0) * variable.dtype.base_dtype.size
            sizes[int(task.group(1))] += size
    return sizes


def describe_load(stored: Sequence[int]) -> str:
    """Returns how much each parameter server stores, as one line."""
    return "stored: " + ", ".join(f"ps {i} {size / 1e6:.1f} MB" for i, size in enumerate(stored))


def imbalance(stored: Sequence[int]) -> str:
    """Returns a warning if a parameter server stores far more than the mean, else ""."""
    mean, most = sum(stored) / len(stored), max(stored)
    if most <= max(_FACTOR * mean, _LEAST):
        return ""
    return (
        f"WARNING: ps {list(stored).index(most)} stores {most / 1e6:.1f} MB, {most / mean:.1f} "
        f"times the mean of {len(stored)} parameter servers; cut large variables into parts, by "
        "get_variable(..., partitioner=...)"
    )
