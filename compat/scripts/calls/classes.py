"""Classes whose constructors took other arguments before TensorFlow 1.0."""

from __future__ import annotations

import abc
import contextlib
from concurrent import futures
from typing import Any

from compat._tensorflow import tf1
from compat.liveness.watchdog import begun

RELEASE = "compat_release_sync_replicas"
_MANY = 1000
_PATIENCE_SECS = 5.0


class Old(abc.ABCMeta):
    """Calls today's class with today's arguments; its instances are ours too, for `isinstance`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _real(cls))


def _real(cls: type) -> type:
    """Returns the class of TensorFlow that one of ours stands for."""
    return next(base for base in cls.__mro__ if not isinstance(base, Old))


class SparseTensor(tf1.SparseTensor, metaclass=Old):
    """Took `shape`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "shape" in kwargs:
            kwargs["dense_shape"] = kwargs.pop("shape")
        super().__init__(*args, **kwargs)


def SparseTensorValue(*args: Any, **kwargs: Any) -> Any:
    """Took `shape`."""
    if "shape" in kwargs:
        kwargs["dense_shape"] = kwargs.pop("shape")
    return tf1.SparseTensorValue(*args, **kwargs)


class Supervisor(tf1.train.Supervisor, metaclass=Old):
    """Took `graph_def`, which the graph has made superfluous."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("graph_def", None)
        super().__init__(*args, **kwargs)


class SyncReplicasOptimizer(tf1.train.SyncReplicasOptimizer, metaclass=Old):
    """Took `replica_id` until 0.11; the number of a replica is not needed any more."""

    def __init__(self, opt: Any, replicas_to_aggregate: int, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("replica_id", None)
        if not kwargs.get("total_num_replicas", 1):
            kwargs.pop("total_num_replicas")  # 0 stood for as many as are aggregated.
        super().__init__(opt, replicas_to_aggregate, *args, **kwargs)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the training operation; keeps in the graph what `release` runs."""
        train_op = super().apply_gradients(*args, **kwargs)
        tf1.add_to_collection(RELEASE, self.get_init_tokens_op(_MANY))
        return train_op

    def get_clean_up_op(self) -> Any:
        """Returns what aborted the accumulators' waiting at the end; nothing waits there now."""
        return tf1.no_op()


def release(graph: Any, target: str) -> None:
    """Lets workers go on that wait for the next update of `SyncReplicasOptimizer`.

    The chief makes the updates. Once it has ended, the others would wait for ever: its last act is
    to put tokens in their queue, so that they see the last step and end as well.

    Args:
      graph: the chief's.
      target: of its session.
    """
    operations = graph.get_collection(RELEASE)

    def run() -> None:
        failures = (tf1.errors.OpError, RuntimeError)
        with contextlib.suppress(*failures), tf1.Session(target, graph=graph) as session:
            session.run(operations)

    if operations:
        futures.wait([begun(run)], timeout=_PATIENCE_SECS)
