"""Optimizers that wrap another one: they average or clip variables, or drop gradients."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from compat._tensorflow import tf1


class Around(tf1.train.Optimizer):
    """An optimizer that delegates gradients and slots to another one."""

    def __init__(self, opt: Any, use_locking: bool = False, name: str = "Around") -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot_names(*args, **kwargs)


class ClippedByGlobalNorm(Around):
    """Applies gradients after it has clipped them to a global norm of `clip_norm`."""

    def __init__(self, opt: Any, clip_norm: Any) -> None:
        super().__init__(opt, name="ClipByNorm" + opt.get_name())
        self._clip_norm = clip_norm

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        clipped, _ = clip_gradients_by_global_norm(grads_and_vars, self._clip_norm)
        return self._opt.apply_gradients(clipped, *args, **kwargs)


class MovingAverageOptimizer(Around):
    """Averages the variables after each update of an optimizer."""

    def __init__(
        self,
        opt: Any,
        average_decay: float = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(opt, name="MovingAverage")
        self._sequential_update = sequential_update
        self._ema = tf1.train.ExponentialMovingAverage(average_decay, num_updates)
        self._averages: dict[str, Any] | None = None

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = list(grads_and_vars)
        train = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [variable for gradient, variable in pairs if gradient is not None]
        with tf1.control_dependencies([train] if self._sequential_update else []):
            average = self._ema.apply(variables)
        self._averages = {each.op.name: self._ema.average(each) for each in variables}
        return tf1.group(train, average, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Any:
        """Returns a saver that stores averages under the names of variables, and vice versa."""
        if self._averages is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        saved = var_list or tf1.global_variables()
        if not isinstance(saved, dict):
            saved = {variable.op.name: variable for variable in saved}
        swapped = dict(saved)
        for name_of_own, average in self._averages.items():
            for here, there in ((name_of_own, average.op.name), (average.op.name, name_of_own)):
                if here in saved and there not in saved:
                    raise ValueError(
                        f"Variable to swap {there} is not part of variables to save. This breaks "
                        "MovingAverageOptimizer."
                    )
                if here in saved:
                    swapped[here] = saved[there]
        return tf1.train.Saver(swapped, name=name, **kwargs)


class DropStaleGradientOptimizer(Around):
    """Drops gradients if more than `staleness` steps have passed since their loss was computed.

    The variable `stale_counter`, float32, counts dropped updates. The summary "Gradient staleness
    percentage" is their fraction of all steps.
    """

    def __init__(
        self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"
    ) -> None:
        super().__init__(opt, use_locking, name)
        self._staleness = staleness
        self._local_step: Any = None  # The global step at which this worker computes its loss.

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        with tf1.colocate_with(loss):
            self._local_step = tf1.train.get_global_step() + 0
        with tf1.control_dependencies([self._local_step]):
            return self._opt.compute_gradients(tf1.identity(loss), *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = list(grads_and_vars)
        with tf1.colocate_with(global_step):
            counter = tf1.get_variable(
                "stale_counter", [], initializer=tf1.zeros_initializer(), trainable=False
            )

        def accept() -> Any:
            applied = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            with tf1.control_dependencies([applied]):
                return tf1.identity(0.0)

        computed = [getattr(gradient, "op", None) for gradient, _ in pairs]
        known = tf1.control_dependencies([op for op in computed if op is not None])
        with known, tf1.colocate_with(global_step):
            passed = tf1.reshape(global_step.read_value() - self._local_step, [])
        is_fresh = tf1.less_equal(passed, self._staleness)
        left_out = tf1.cond(is_fresh, accept, lambda: tf1.identity(1.0))
        share = counter / tf1.cast(global_step + 1, tf1.float32)
        tf1.summary.scalar("Gradient staleness percentage", share)
        return counter.assign_add(left_out)


class VariableClippingOptimizer(Around):
    """Limits the norm of variables after each update; for embeddings, of the updated rows only.

    Args:
      opt: The optimizer of the updates.
      vars_to_clip_dims: By variable to limit, the dimensions over which the norm is computed.
      max_norm: The largest L2 norm.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: Mapping[Any, Sequence[int]],
        max_norm: Any,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(opt, use_locking, name)
        self._dims = {each.ref(): list(dims) for each, dims in vars_to_clip_dims.items()}
        self._max_norm, self._is_colocated = max_norm, colocate_clip_ops_with_vars

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = list(grads_and_vars)
        with tf1.name_scope(name, self._name) as scope:
            updates = [self._opt.apply_gradients(pairs, global_step=global_step)]
            with tf1.control_dependencies(updates):
                for gradient, variable in pairs:
                    if gradient is not None and variable.ref() in self._dims:
                        with tf1.name_scope("clip_" + variable.op.name):
                            updates.append(self._clipped(gradient, variable))
            return tf1.group(*updates, name=scope)

    def _clipped(self, gradient: Any, variable: Any) -> Any:
        dims = self._dims[variable.ref()]
        is_sparse = isinstance(gradient, tf1.IndexedSlices) and 0 not in dims
        with tf1.colocate_with(variable, ignore_existing=not self._is_colocated):
            value = variable.read_value()
            value = tf1.gather(value, gradient.indices) if is_sparse else value
            change = value - tf1.clip_by_norm(value, self._max_norm, dims)
            if not is_sparse:
                return variable.assign_sub(change, use_locking=self._use_locking)
            rows = tf1.IndexedSlices(change, gradient.indices, gradient.dense_shape)
            return variable.scatter_sub(rows, use_locking=self._use_locking)


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: Any = 20.0) -> Any:
    """Returns pairs of gradients and variables, clipped by their global norm, and this norm."""
    gradients, variables = zip(*gradients_variables)
    norm = tf1.global_norm(gradients)
    clipped, _ = tf1.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(clipped, variables)), norm
