"""Optimizers that average the models of all workers, or the gradients of several of their steps."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from compat._tensorflow import tf1
from compat.contrib.opt.local_updates import Getter, LocalUpdates, counted, pulled


class ModelAverageCustomGetter(Getter):
    """Gives each variable a copy on the servers, which begins with the value of the worker's."""

    def _center(self, local: Any, get: Callable[..., Any]) -> Any:
        return tf1.Variable(
            local.initialized_value(),
            trainable=False,
            collections=[tf1.GraphKeys.GLOBAL_VARIABLES],
            name=f"{self.center}/{local.op.name}",
        )


class ModelAverageOptimizer(LocalUpdates):
    """Averages the models of all workers, which wait for each other, every `interval_steps` steps.

    Source: McDonald, Hall and Mann, Distributed Training Strategies for the Structured Perceptron,
    2010.
    """

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, ma_custom_getter, interval_steps, use_locking, name)
        self._num_worker, self._is_chief = num_worker, is_chief

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        if global_step is None:
            raise ValueError("Global step is required")
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _exchange(self, pairs: Sequence[Any], local: Sequence[Any], global_step: Any) -> list[Any]:
        centers = self._centers(local)
        with tf1.colocate_with(global_step):
            queue = tf1.FIFOQueue(-1, [tf1.bool], shapes=[[]], shared_name="sync_queue")
        given, means = [], []
        for each, center in zip(local, centers):
            with tf1.device(center.device):
                models = tf1.ConditionalAccumulator(
                    each.dtype.base_dtype, each.shape, shared_name=center.name + "/var_accum"
                )
                given.append(models.apply_grad(each.read_value(), local_step=global_step))
                means.append(models.take_grad(self._num_worker))
        with tf1.control_dependencies(given):
            if self._is_chief:
                updates = counted(global_step)
                for center, mean in zip(centers, means):
                    with tf1.device(center.device):
                        updates.append(tf1.assign(center, mean).op)
                with tf1.control_dependencies(updates), tf1.device(global_step.device):
                    passed = queue.enqueue_many(tf1.fill([self._num_worker - 1], False))
            else:
                with tf1.device(global_step.device):
                    passed = queue.dequeue()
        with tf1.control_dependencies([passed]):
            return pulled(local, centers)

    def make_session_run_hook(self, is_chief: Any = None, task_index: Any = None) -> Any:
        """Returns a hook that does nothing, as that of 1.15: `get_init_op` is for the program."""
        return tf1.train.SessionRunHook()


class AGNCustomGetter(Getter):
    """Gives each variable a copy on the servers, and one for the sum of gradients."""

    own = "grad_variable"


class AGNOptimizer(LocalUpdates):
    """Updates the model on the servers by the mean of the gradients of a worker's last steps.

    The worker's own model, which is updated at each step, becomes that of the servers then.
    Source: Hermans, Spanakis and Moeckel, Accumulated Gradient Normalization, 2017.
    """

    def __init__(
        self,
        optimizer: Any,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(optimizer, custom_getter, communication_period, use_locking, name)

    def _update(self, pairs: Sequence[Any]) -> list[Any]:
        sums = self._own([each for _, each in pairs])
        added = [tf1.assign_add(each, gradient).op for each, (gradient, _) in zip(sums, pairs)]
        return [*super()._update(pairs), *added]

    def _exchange(self, pairs: Sequence[Any], local: Sequence[Any], global_step: Any) -> list[Any]:
        centers, sums = self._centers(local), self._own(local)
        means = [each.read_value() / self._period for each in sums]
        with tf1.control_dependencies([self._opt.apply_gradients(list(zip(means, centers)))]):
            return counted(global_step) + pulled(local, centers) + _zeroed(sums)

    def _initial(self, local: Sequence[Any]) -> list[Any]:
        return super()._initial(local) + _zeroed(self._own(local))


def _zeroed(variables: Sequence[Any]) -> list[Any]:
    return [tf1.assign(each, tf1.zeros_like(each)).op for each in variables]
