"""Classes whose constructors accept the arguments from before TensorFlow 1.0."""

from __future__ import annotations

import abc
import contextlib
from concurrent import futures
from typing import Any

from compat._tensorflow import tf1
from compat.cluster.liveness.watchdog import submit
from compat.runtime import interface
from compat.runtime.graphs.device_placement import filtered
from compat.runtime.graphs.packing import distinct_rows
from compat.scripts.shims.arguments import rename

RELEASE, _RETURN = "compat_release_sync_replicas", "compat_return_sync_token"
_MANY = 1000
_PATIENCE_SECS = 5.0


def __getattr__(name: str) -> Any:
    """Returns a model class of Keras 2, such as `keras_Sequential`."""
    package, _, last = name.rpartition("_")
    if package not in ("keras", "keras_models"):
        raise AttributeError(name)
    models = tf1.keras.models
    for kind in models.Sequential.__mro__[:-1]:
        if issubclass(kind, models.Model) and "input_spec" in vars(kind):
            # Until 2.2 a model could be called with any input that its layers accept.
            kind.input_spec = property(lambda model: None, kind.input_spec.fset)
    return getattr(models, last)


class Old(abc.ABCMeta):
    """Metaclass for subclasses of TensorFlow's classes.

    `isinstance(x, subclass)` is also True if `x` is an instance of TensorFlow's class.
    """

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


class zeros_initializer(tf1.zeros_initializer):
    """Accepts a shape: until 0.12 this was a function, which returned zeros."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("partition_info", None)
        if "shape" in kwargs or args and isinstance(args[0], (list, tuple, tf1.TensorShape)):
            return tf1.zeros(*args, **kwargs)
        return super().__new__(cls)


class SyncReplicasOptimizer(tf1.train.SyncReplicasOptimizer, metaclass=Old):
    """Accepts `replica_id`, an argument until 0.11, and ignores it."""

    def __init__(self, opt: Any, replicas_to_aggregate: int, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("replica_id", None)
        if not kwargs.get("total_num_replicas", 1):
            kwargs.pop("total_num_replicas")  # 0 stood for `replicas_to_aggregate`.
        super().__init__(opt, replicas_to_aggregate, *args, **kwargs)
        self._has_coordinator = interface.has_coordinator()

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Returns the training operation; adds the operations that `release` runs to the graph.

        In a `compat.step` of the modern runtime each call is a replica, and needs neither tokens
        nor queues.
        """
        if self._has_coordinator:
            self.local_step_init_op = self.chief_init_op = tf1.no_op()
            self.ready_for_local_init_op = None
            return interface.current_runtime().apply_mean(
                self._opt, self._replicas_to_aggregate, grads_and_vars, global_step, name
            )
        pairs = [(distinct_rows(gradient), variable) for gradient, variable in grads_and_vars]
        train_op = super().apply_gradients(pairs, global_step, name)
        tf1.add_to_collection(RELEASE, self.get_init_tokens_op(_MANY))
        least = self._replicas_to_aggregate - self._total_num_replicas
        tf1.add_to_collection(_RETURN, self.get_init_tokens_op(max(1, least)))
        return train_op

    def get_init_tokens_op(self, num_tokens: int = -1) -> Any:
        # The step has made this operation; its graph is final now.
        return (
            self.chief_init_op if self._has_coordinator else super().get_init_tokens_op(num_tokens)
        )

    def get_chief_queue_runner(self) -> Any:
        return None if self._has_coordinator else super().get_chief_queue_runner()

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> Any:
        if self._has_coordinator:
            return tf1.train.SessionRunHook()
        return super().make_session_run_hook(is_chief, num_tokens)

    def get_clean_up_op(self) -> Any:
        """Returns an operation without effect: accumulators need no clean-up any more."""
        return tf1.no_op()


def release(graph: Any, target: str, own: str, is_chief: bool) -> None:
    """Releases workers that wait for the next step of `SyncReplicasOptimizer`.

    The chief applies the gradients, so the other workers would block forever once it has finished.
    Before it exits, it puts tokens in their queue, so that they see the last step and finish too.
    Another worker returns its token, with which those that remain make its gradients; they would
    wait for these forever. `own` is this task: the session does not need a worker that has left
    before.
    """
    collected = graph.get_collection_ref(RELEASE if is_chief else _RETURN)
    operations, collected[:] = [*collected], []  # A second call does nothing.

    def run() -> None:
        failures = (tf1.errors.OpError, RuntimeError)
        config = filtered(None, own, graph)
        with contextlib.suppress(*failures), tf1.Session(target, graph, config) as session:
            session.run(operations)

    if operations:
        futures.wait([submit(run)], timeout=_PATIENCE_SECS)
