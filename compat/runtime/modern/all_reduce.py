"""Workers that make each update together.

Without a parameter server each has weights of its own, and `MultiWorkerMirroredStrategy` joins
them: what a step averages, its gradients above all, is the same on all of them, and so are the
weights. With parameter servers these collect the gradients of several calls, and the last of them
makes the update: a session runs that one alone.
"""

from __future__ import annotations

import contextlib
import signal
from typing import Any, Sequence

import numpy as np

from compat._tensorflow import quietly, release, tf, tf1
from compat.cluster.roles import chief_task
from compat.errors import UserError
from compat.liveness import identity
from compat.liveness.probe import reason_not_serving
from compat.runtime.packing import packed, unpacked
from compat.server import Server

_TOGETHER = "compat_calls_of_an_update"
_NEVER_STALE = 2**62  # For accumulators, which drop what was computed before their last update.


def calls_of_an_update(graph: Any) -> int:
    """Returns how many calls of a step make one update."""
    return int(next(iter(graph.get_collection(_TOGETHER)), 1))


def apply_mean(optimizer: Any, calls: int, gradients: Sequence[Any], *args: Any) -> Any:
    """Returns the operation by which each `calls` calls apply the mean of their gradients.

    Args:
      optimizer: of `tf.compat.v1.train`.
      calls: how many make an update.
      gradients: pairs of a gradient and its variable.
      args: of `apply_gradients` after these.
    """
    pairs = [(gradient, variable) for gradient, variable in gradients if gradient is not None]
    if calls == 1:
        return optimizer.apply_gradients(pairs, *args)
    tf1.add_to_collection(_TOGETHER, calls)
    sums, given = [], []
    for gradient, variable in pairs:
        if isinstance(gradient, tf.IndexedSlices):
            raise UserError(
                f"synchronous replicas of the modern runtime cannot average the rows of "
                f"{variable.name}; use --runtime=legacy"
            )
        with tf.device(variable.device):
            sums.append(tf1.ConditionalAccumulator(gradient.dtype, shape=variable.shape))
            given.append(sums[-1].apply_grad(gradient, _NEVER_STALE))

    def update() -> Any:
        means = [(each.take_grad(calls), pair[1]) for each, pair in zip(sums, pairs)]
        with tf.control_dependencies([optimizer.apply_gradients(means, *args)]):
            return tf.constant(True)

    with tf.control_dependencies(given):
        is_last = tf.greater_equal(sums[0].num_accumulated(), calls)
    return tf.group(tf.cond(is_last, update, lambda: tf.constant(False)))


class Replicas:
    """Joins this worker with the others."""

    def __init__(self, server: Server) -> None:
        with identity.declared_until_started(server.address, server.run):
            server.wait_for_peers(everybody=True)
            if not server.is_chief:
                # Asking too early, it takes the chief for lost, or waits for ever (2.4 and later).
                server.monitor([chief_task(server.cluster)], reason_not_serving).wait()
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf1.train.ClusterSpec(server.cluster.as_dict()),
            task_type=server.task.job,
            task_id=server.task.index,
            rpc_layer="grpc",
        )
        with quietly():
            self._strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
        # TensorFlow, to be told of preemption, has taken SIGTERM from Python.
        with contextlib.suppress(ValueError):  # Python's handlers belong to its main thread.
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        identity.declare(server.target, server.task, server.run)
        devices = self._strategy.extended.worker_devices
        if len(devices) > 1:
            raise UserError(
                f"{server.task.name} sees {len(devices)} GPUs; start a worker for each of them, "
                "with its number in CUDA_VISIBLE_DEVICES"
            )
        self._device = devices[0]
        self._is_chief = server.is_chief
        self._any = release.traced(lambda flag: self._reduce(tf.distribute.ReduceOp.SUM, flag))

    def average(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns the means over all workers; sent as one message. See `compat.average`."""
        mean = self._reduce(tf.distribute.ReduceOp.MEAN, packed(tensors))
        return unpacked(mean, [tensor.shape for tensor in tensors])

    def any(self, flag: bool) -> bool:
        """Returns whether the flag is set on any worker; waits until all have asked."""
        return bool(self._any(tf.constant(np.int32(flag))) > 0)

    def all(self, flag: Any) -> Any:
        """Returns, inside a step, whether the boolean scalar `flag` is true on all workers."""
        missing = tf.cast(tf.logical_not(flag), tf.int32)
        return tf.equal(self._reduce(tf.distribute.ReduceOp.SUM, missing), 0)

    def broadcast(self, variables: Sequence[Any]) -> None:
        """Gives the variables of all workers the chief's values."""

        def chiefs() -> list[Any]:
            mine = [v.read_value() if self._is_chief else tf.zeros_like(v) for v in variables]
            return [self._reduce(tf.distribute.ReduceOp.SUM, value) for value in mine]

        for variable, value in zip(variables, release.traced(chiefs)()):
            variable.assign(value)

    def _reduce(self, how: Any, tensor: Any) -> Any:
        with tf.device(self._device):  # The strategy wants to know where it is.
            tensor = tf.identity(tensor)
        return self._strategy.run(
            lambda value: tf.distribute.get_replica_context().all_reduce(how, value), [tensor]
        )
