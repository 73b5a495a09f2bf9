"""`tf.contrib.opt`: optimizers of `tf.train` that update sparsely, average or decay weights."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1


class LazyAdamOptimizer(tf1.train.AdamOptimizer):
    """Adam that updates of an embedding, and of its moments, the rows with a gradient alone.

    `tf.compat.v1.train.AdamOptimizer` lets all moments decay at each update, and moves all rows by
    them, which takes as long as the table is large. The correction of the bias counts all updates.
    Where each batch reads all rows, both are the same.
    """

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        numbers = (*self._get_beta_accumulators(), self._lr_t, self._beta1_t, self._beta2_t)
        power1, power2, rate, beta1, beta2 = (tf1.cast(n, var.dtype.base_dtype) for n in numbers)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * tf1.gather(m, indices) + (1 - beta1) * grad
        v_rows = beta2 * tf1.gather(v, indices) + (1 - beta2) * tf1.square(grad)
        rate = rate * tf1.sqrt(1 - power2) / (1 - power1)
        change = rate * m_rows / (tf1.sqrt(v_rows) + tf1.cast(self._epsilon_t, rate.dtype))
        locks = {"use_locking": self._use_locking}
        return done(
            tf1.scatter_update(m, indices, m_rows, **locks),
            tf1.scatter_update(v, indices, v_rows, **locks),
            tf1.scatter_sub(var, indices, change, **locks),
        )


def done(*updated: Any) -> Any:
    """Returns an operation that is done when the variables have been updated."""
    return tf1.group(*(getattr(variable, "op", variable) for variable in updated))


class MovingAverageOptimizer(tf1.train.Optimizer):
    """Averages the variables after each update of an optimizer."""

    def __init__(
        self,
        opt: Any,
        average_decay: float = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        self._optimizer, self._sequential_update = opt, sequential_update
        self._ema = tf1.train.ExponentialMovingAverage(average_decay, num_updates)
        self._averages: dict[str, Any] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = list(grads_and_vars)
        train = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [variable for gradient, variable in pairs if gradient is not None]
        with tf1.control_dependencies([train] if self._sequential_update else []):
            average = self._ema.apply(variables)
        self._averages = {each.op.name: self._ema.average(each) for each in variables}
        return tf1.group(train, average, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Any:
        """Returns a saver that saves averages under the names of variables, and these as theirs."""
        if self._averages is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        saved = var_list or tf1.global_variables()
        if not isinstance(saved, dict):
            saved = {variable.op.name: variable for variable in saved}
        swapped = dict(saved)
        for own, average in self._averages.items():
            for here, there in ((own, average.op.name), (average.op.name, own)):
                if here in saved and there not in saved:
                    raise ValueError(
                        f"Variable to swap {there} is not part of variables to save. This breaks "
                        "MovingAverageOptimizer."
                    )
                if here in saved:
                    swapped[here] = saved[there]
        return tf1.train.Saver(swapped, name=name, **kwargs)


class DecoupledWeightDecayExtension:
    """Before an update, multiplies variables, or the rows that are updated, by 1 - `weight_decay`.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._decay_var_list: Any = None
        self._weight_decay = weight_decay
        super().__init__(*args, **kwargs)

    def minimize(self, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Minimizes a loss; all variables decay, as in 1.15 whatever `decay_var_list` has."""
        return super().minimize(*args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Any = None,
    ) -> Any:
        """Applies gradients; `decay_var_list` are the variables that decay, by default all."""
        self._decay_var_list = decay_var_list
        return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]

    def _rate(self, var: Any) -> Any:
        """Returns how much of a variable decays, None where nothing does."""
        listed = [id(each) for each in self._decay_var_list or [var]]
        if id(var) not in listed:
            return None
        rate = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        return tf1.cast(rate, var.dtype.base_dtype)

    def _decayed(self, var: Any, update: Callable[[], Any]) -> Any:
        rate = self._rate(var)
        with tf1.control_dependencies([] if rate is None else [var.assign_sub(rate * var)]):
            return update()

    def _decayed_rows(self, var: Any, indices: Any, update: Callable[[], Any]) -> Any:
        rate, before = self._rate(var), []
        if rate is not None:
            before = [tf1.scatter_sub(var, indices, rate * tf1.gather(var, indices))]
        with tf1.control_dependencies(before):
            return update()

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        apply = super()._apply_dense  # type: ignore[misc]
        return self._decayed(var, lambda: apply(grad, var))

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        apply = super()._resource_apply_dense  # type: ignore[misc]
        return self._decayed(var, lambda: apply(grad, var))

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        apply = super()._apply_sparse  # type: ignore[misc]
        return self._decayed_rows(var, grad.indices, lambda: apply(grad, var))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        apply = super()._resource_apply_sparse  # type: ignore[misc]
        return self._decayed_rows(var, indices, lambda: apply(grad, var, indices))


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """Returns a class of optimizers with the first argument `weight_decay`."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        pass

    return OptimizerWithDecoupledWeightDecay


class AdamWOptimizer(DecoupledWeightDecayExtension, tf1.train.AdamOptimizer):
    """Adam with decoupled weight decay."""

    def __init__(self, weight_decay: Any, *args: Any, name: str = "AdamW", **kwargs: Any) -> None:
        super().__init__(weight_decay, *args, name=name, **kwargs)


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf1.train.MomentumOptimizer):
    """Momentum with decoupled weight decay."""

    def __init__(
        self, weight_decay: Any, *args: Any, name: str = "MomentumW", **kwargs: Any
    ) -> None:
        super().__init__(weight_decay, *args, name=name, **kwargs)
