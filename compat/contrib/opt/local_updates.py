"""Optimizers that update a worker's own copy of the model, and now and then the one on the servers.

The model is made by `get_variable` under a custom getter, which gives each trainable variable a
copy on the worker, under the variable's name, and one on the servers, `global_center_variable/`
before it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1

_KEYS = tf1.GraphKeys
_COLLECTIONS = "collections"


class Getter:
    """A custom getter of variables; `worker_device` is the device of the worker's own variables."""

    center = "global_center_variable"  # The scope of the variables on the servers.
    own = ""  # The scope of another variable of the worker's beside each.

    def __init__(self, worker_device: str) -> None:
        self._worker_device = worker_device
        # What belongs to the worker's variables, by their references.
        self._global_map: dict[Any, Any] = {}
        self._own_map: dict[Any, Any] = {}

    def __call__(
        self, getter: Any, name: str, trainable: Any, collections: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not trainable:
            is_local = _KEYS.LOCAL_VARIABLES in (collections or ())
            device = tf1.device(self._worker_device) if is_local else contextlib.nullcontext()
            with device:
                return getter(name, *args, trainable=False, collections=collections, **kwargs)

        def get(scope: str, learns: bool, key: str) -> Any:
            options = {"trainable": learns, _COLLECTIONS: [key], **kwargs}
            return getter(f"{scope}/{name}" if scope else name, *args, **options)

        with tf1.device(self._worker_device):
            local = get("", True, _KEYS.LOCAL_VARIABLES)
        if kwargs.get("reuse") is not True:
            self._pair(local, self._center(local, get), self._global_map)
            if self.own:
                with tf1.device(self._worker_device):
                    other = get(self.own, False, _KEYS.LOCAL_VARIABLES)
                self._pair(local, other, self._own_map)
        return local

    def _center(self, local: Any, get: Callable[..., Any]) -> Any:
        return get(self.center, False, _KEYS.GLOBAL_VARIABLES)

    @staticmethod
    def _pair(local: Any, other: Any, known: dict[Any, Any]) -> None:
        parts = [list(each) if hasattr(each, "partitions") else [each] for each in (local, other)]
        known.update((each.ref(), paired) for each, paired in zip(*parts))


class LocalUpdates(tf1.train.Optimizer):
    """Counts a worker's own steps, and calls `_exchange` after every `period` of them."""

    def __init__(self, opt: Any, getter: Getter, period: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt, self._getter, self._period = opt, getter, period
        keys = [_KEYS.LOCAL_VARIABLES]
        self._local_step = tf1.get_variable(
            "local_step", initializer=0, trainable=False, collections=keys
        )
        opt._prepare()

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Updates the worker's variables; `global_step` counts the exchanges."""
        pairs = [(gradient, each) for gradient, each in grads_and_vars if gradient is not None]
        with tf1.variable_creator_scope(_on_worker):
            updates = self._update(pairs)
        with tf1.control_dependencies(updates):
            steps = tf1.assign_add(self._local_step, 1, name="local_step_update")
        is_due = tf1.equal(tf1.mod(steps, self._period), 0)

        def exchange() -> Any:
            return tf1.group(self._exchange(pairs, [each for _, each in pairs], global_step))

        return tf1.cond(is_due, exchange, tf1.no_op)

    def _update(self, pairs: Sequence[Any]) -> list[Any]:
        return [self._opt.apply_gradients(pairs)]

    def _exchange(self, pairs: Sequence[Any], local: Sequence[Any], global_step: Any) -> list[Any]:
        raise NotImplementedError

    def _centers(self, local: Sequence[Any]) -> list[Any]:
        return [self._getter._global_map[each.ref()] for each in local]

    def _own(self, local: Sequence[Any]) -> list[Any]:
        return [self._getter._own_map[each.ref()] for each in local]

    def get_init_op(self, task_index: int = 0) -> Any:
        """Returns an operation that gives the worker's variables the values on the servers."""
        return tf1.group(self._initial(tf1.trainable_variables()))

    def _initial(self, local: Sequence[Any]) -> list[Any]:
        return pulled(local, self._centers(local))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> Any:
        """Returns a hook that runs `get_init_op` when a session begins."""
        return _InitialHook(self, task_index)


class _InitialHook(tf1.train.SessionRunHook):
    def __init__(self, optimizer: LocalUpdates, task_index: int) -> None:
        self._optimizer, self._task_index = optimizer, task_index

    def begin(self) -> None:
        self._init = self._optimizer.get_init_op(self._task_index)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._init)


def _on_worker(next_creator: Any, **kwargs: Any) -> Any:
    """Makes a variable of the inner optimizer one of the worker's own."""
    keys = kwargs.pop(_COLLECTIONS, None) or [_KEYS.GLOBAL_VARIABLES]
    keys = [_KEYS.LOCAL_VARIABLES if key == _KEYS.GLOBAL_VARIABLES else key for key in keys]
    return next_creator(collections=keys, **kwargs)


def pulled(local: Sequence[Any], centers: Sequence[Any]) -> list[Any]:
    """Sets variables to others."""
    return [tf1.assign(each, center.read_value()).op for each, center in zip(local, centers)]


def counted(global_step: Any) -> list[Any]:
    """Adds one to the global step, if there is one."""
    if global_step is None:
        return []
    with tf1.colocate_with(global_step):
        return [tf1.assign_add(global_step, 1).op]
