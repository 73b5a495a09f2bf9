"""Optimizers of `tf.train` that decay weights."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1


class DecoupledWeightDecayExtension:
    """Multiplies variables by 1 - `weight_decay` before an update; of embeddings, the used rows.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._decay_var_list: Any = None
        self._weight_decay = weight_decay
        super().__init__(*args, **kwargs)

    def minimize(self, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Minimizes a loss; all variables decay, since 1.15 ignores `decay_var_list` here."""
        return super().minimize(*args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Any = None,
    ) -> Any:
        """Applies gradients; the variables in `decay_var_list`, by default all, decay."""
        self._decay_var_list = decay_var_list
        return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]

    def _rate(self, var: Any) -> Any:
        """Returns the decay of a variable, or None if it does not decay."""
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
