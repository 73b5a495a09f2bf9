"""Optimizers whose step depends on whether a gradient has the sign of the earlier ones.

Source: Bello, Zoph, Vasudevan and Le, Neural Optimizer Search with Reinforcement Learning, 2017.
"""

from __future__ import annotations

import math
from typing import Any, Callable, ClassVar, Mapping, Sequence

from compat._tensorflow import tf1
from compat.contrib.opt.adaptive import Kernel, done


class _Sign(Kernel, tf1.train.Optimizer):
    """Multiplies each gradient by a number, which is larger where its sign is that of the average.

    Of an embedding it updates the rows with a gradient; the averages of all rows decay.
    """

    slots: ClassVar[Mapping[str, str]] = {"m": "m"}
    number: ClassVar[str]  # The kernel's name for what the multiplier is made of.

    def __init__(
        self,
        learning_rate: Any,
        number: Any,
        beta: Any,
        sign_decay_fn: Callable[[Any], Any] | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._chosen = {"lr": learning_rate, "beta": beta, self.number: number}
        self._decay, self._sign_decay = sign_decay_fn, 1.0

    def _multiplier(self, number: Any, sign: Any) -> Any:
        raise NotImplementedError

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        if self._decay is not None:
            self._sign_decay = self._decay(global_step)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)

    def _numbers(self, var: Any) -> dict[str, Any]:
        return {**self._chosen, "sign_decay": self._sign_decay}

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        found = {name: tf1.cast(n, var.dtype.base_dtype) for name, n in self._numbers(var).items()}
        m, beta = self.get_slot(var, "m"), found["beta"]
        shape = tf1.shape(var, out_type=indices.dtype)
        new = tf1.scatter_nd(indices[:, tf1.newaxis], grad * (1 - beta), shape)
        locks = {"use_locking": self._use_locking}
        m_new = tf1.assign(m, m * beta + new, **locks)
        sign = tf1.gather(tf1.sign(m_new), indices) * tf1.sign(grad)
        multiplier = self._multiplier(found[self.number], found["sign_decay"] * sign)
        return done(tf1.scatter_sub(var, indices, found["lr"] * multiplier * grad, **locks), m_new)


class AddSignOptimizer(_Sign):
    """Multiplies each gradient by `alpha`, and one more or less."""

    kernel, number = "AddSign", "alpha"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, alpha, beta, sign_decay_fn, use_locking, name)

    def _multiplier(self, number: Any, sign: Any) -> Any:
        return number + sign


class PowerSignOptimizer(_Sign):
    """Multiplies each gradient by `base`, or divides it by that."""

    kernel, number = "PowerSign", "logbase"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, math.log(base), beta, sign_decay_fn, use_locking, name)

    def _multiplier(self, number: Any, sign: Any) -> Any:
        return tf1.exp(number * sign)
