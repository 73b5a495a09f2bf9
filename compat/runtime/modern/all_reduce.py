"""Workers that make each update together, without a parameter server.

Each worker has all weights. `MultiWorkerMirroredStrategy` connects the workers, and a step averages
its gradients over them, so the weights stay equal.
"""

from __future__ import annotations

import contextlib
import signal
from typing import Any, Sequence

import numpy as np

from compat._tensorflow import private, quietly, release, tf, tf1
from compat.cluster.liveness import identity
from compat.cluster.liveness.cluster import Cluster
from compat.cluster.liveness.probe import reason_not_serving
from compat.cluster.roles import chief_task
from compat.errors import UserError
from compat.runtime.graphs.packing import packed, unpacked

_KEYS = "compat_all_reduce_keys"
_GROUP = 1_000_000  # The key of this group of workers; the strategy counts its own keys from 1.


class Replicas:
    """Connects this worker with the others, and combines values of all of them."""

    def __init__(self, server: Cluster) -> None:
        with identity.declared_until_started(server.address, server.run):
            server.wait_for_peers(everybody=True)
            if not server.is_chief:
                # A strategy that is created too early reports the chief as lost, or waits forever
                # (2.4 and later).
                server.monitor([chief_task(server.cluster)], reason_not_serving).wait()
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf1.train.ClusterSpec(server.cluster.as_dict()),
            task_type=server.task.job,
            task_id=server.task.index,
            rpc_layer="grpc",
        )
        with quietly():
            self._strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
        # TensorFlow has replaced Python's handler of SIGTERM, to detect preemption.
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

    def any(self, flag: bool) -> bool:
        """Returns whether the flag is set on any worker; waits until all have asked."""
        return bool(self._any(tf.constant(np.int32(flag))) > 0)

    def all(self, flag: Any) -> Any:
        """Returns, inside a step, whether the boolean scalar `flag` is true on all workers."""
        missing = tf.cast(tf.logical_not(flag), tf.int32)
        return tf.equal(self._reduce(tf.distribute.ReduceOp.SUM, missing), 0)

    def broadcast(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the chief's values of arrays that all workers have."""

        def chiefs() -> list[Any]:
            mine = [tf.constant(v if self._is_chief else np.zeros_like(v)) for v in values]
            return [self._reduce(tf.distribute.ReduceOp.SUM, value) for value in mine]

        return [value.numpy() for value in release.traced(chiefs)()]

    def _reduce(self, how: Any, tensor: Any) -> Any:
        with tf.device(self._device):  # The strategy derives its device from the scope.
            tensor = tf.identity(tensor)
        return self._strategy.run(
            lambda value: tf.distribute.get_replica_context().all_reduce(how, value), [tensor]
        )


def average(tensors: Sequence[Any], workers: int) -> list[Any]:
    """Returns the means over all workers, in one message; see `compat.average`."""
    mean = _sum(packed(tensors), workers) / workers
    return unpacked(mean, [tensor.shape for tensor in tensors])


def average_gradients(gradients: Sequence[Any], workers: int) -> list[Any]:
    """Returns the means of gradients; the mean of a row is over the workers that have the row."""
    sparse = [i for i, each in enumerate(gradients) if isinstance(each, tf.IndexedSlices)]
    dense = [tf.convert_to_tensor(each) for each in gradients]
    means = average([*dense, *[_has_row(gradients[i]) for i in sparse]], workers)
    for i, share in zip(sparse, means[len(gradients) :]):
        rows = tf.where(tf.reshape(share, [-1]) > 0)[:, 0]
        mean = tf.gather(means[i], rows) / tf.gather(share, rows)
        means[i] = tf.IndexedSlices(mean, rows, gradients[i].dense_shape)
    return means[: len(gradients)]


def keys(graph: Any) -> list[Any]:
    """Returns the placeholders for the keys of the averages, in the order of the graph.

    Workers find each other's tensors by a key, a number that has to differ between updates.
    """
    return list(graph.get_collection(_KEYS))


def _sum(tensor: Any, workers: int) -> Any:
    key = tf1.placeholder(tf.int32, [], "key")
    tf1.add_to_collection(_KEYS, key)
    return private.sum_of_workers(tensor, workers, _GROUP, key)


def _has_row(gradient: Any) -> Any:
    """Returns 1 for each row of the variable that the sparse gradient has, and 0 for the others."""
    shape = gradient.shape
    ones = tf.ones([tf.size(gradient.indices)], gradient.dtype)
    has_row = tf.math.unsorted_segment_max(ones, gradient.indices, shape[0])
    return tf.reshape(tf.maximum(has_row, 0), [shape[0], *[1] * (len(shape) - 1)])
