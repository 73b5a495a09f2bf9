"""Classes whose constructors accept the arguments from before TensorFlow 1.0."""

from __future__ import annotations

import abc
import contextlib
from concurrent import futures
from typing import Any

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.liveness.watchdog import submit
from compat.runtime import interface
from compat.scripts.calls.arguments import rename

RELEASE = "compat_release_sync_replicas"
_MANY = 1000
_PATIENCE_SECS = 5.0


class Old(abc.ABCMeta):
    """Metaclass that makes instances of TensorFlow's class instances of the subclass as well."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, next(c for c in cls.__mro__ if not isinstance(c, Old)))


class SparseTensor(tf1.SparseTensor, metaclass=Old):
    """Accepts `shape` for `dense_shape`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        rename(kwargs, shape="dense_shape")
        super().__init__(*args, **kwargs)


def SparseTensorValue(*args: Any, **kwargs: Any) -> Any:
    """Accepts `shape` for `dense_shape`."""
    rename(kwargs, shape="dense_shape")
    return tf1.SparseTensorValue(*args, **kwargs)


class SyncReplicasOptimizer(tf1.train.SyncReplicasOptimizer, metaclass=Old):
    """Accepts `replica_id`, an argument until 0.11, and ignores it."""

    def __init__(self, opt: Any, replicas_to_aggregate: int, *args: Any, **kwargs: Any) -> None:
        if interface.selected() == "modern":
            raise UserError(
                "SyncReplicasOptimizer is not available on the modern runtime, where "
                "parameter-server training is asynchronous; use --runtime=legacy"
            )
        kwargs.pop("replica_id", None)
        if not kwargs.get("total_num_replicas", 1):
            kwargs.pop("total_num_replicas")  # 0 meant `replicas_to_aggregate`.
        super().__init__(opt, replicas_to_aggregate, *args, **kwargs)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the training operation; adds the operation that `release` runs to the graph."""
        train_op = super().apply_gradients(*args, **kwargs)
        tf1.add_to_collection(RELEASE, self.get_init_tokens_op(_MANY))
        return train_op

    def get_clean_up_op(self) -> Any:
        """Returns an operation without effect: accumulators need no clean-up any more."""
        return tf1.no_op()


def release(graph: Any, target: str) -> None:
    """Releases workers that wait for the next step of `SyncReplicasOptimizer`.

    The chief applies the gradients, so the other workers would block forever once it has finished.
    Before it exits, it puts tokens in their queue, so that they see the last step and finish too.
    """
    operations = graph.get_collection(RELEASE)

    def run() -> None:
        failures = (tf1.errors.OpError, RuntimeError)
        with contextlib.suppress(*failures), tf1.Session(target, graph=graph) as session:
            session.run(operations)

    if operations:
        futures.wait([submit(run)], timeout=_PATIENCE_SECS)
