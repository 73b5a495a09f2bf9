"""Optimizers whose step depends on earlier gradients, or on the size of a variable."""

from __future__ import annotations

import operator
from typing import Any, Callable, ClassVar, Mapping, Sequence

from compat._tensorflow import tf1


def done(*updated: Any) -> Any:
    """Returns an operation that finishes when the variables have been updated."""
    return tf1.group(*(getattr(variable, "op", variable) for variable in updated))


class Kernel:
    """Applies dense gradients by a kernel of TensorFlow, to reference and resource variables."""

    kernel: ClassVar[str]  # "AdaMax" for the kernels ApplyAdaMax and ResourceApplyAdaMax.
    slots: ClassVar[Mapping[str, str]]  # Slots of the optimizer, by the argument of the kernel.

    def _numbers(self, var: Any) -> dict[str, Any]:
        """Returns the arguments of the kernel that are neither gradient, variable nor slots."""
        raise NotImplementedError

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return done(self._apply_by("Apply", grad, var, lambda variable: variable))

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._apply_by("ResourceApply", grad, var, operator.attrgetter("handle"))

    def _apply_by(self, prefix: str, grad: Any, var: Any, of: Callable[[Any], Any]) -> Any:
        optimizer: Any = self
        slots = {name: of(optimizer.get_slot(var, slot)) for name, slot in self.slots.items()}
        numbers = {
            name: value if isinstance(value, bool) else tf1.cast(value, var.dtype.base_dtype)
            for name, value in self._numbers(var).items()
        }
        locks = {"use_locking": optimizer._use_locking}
        apply = getattr(tf1.raw_ops, prefix + self.kernel)
        return apply(var=of(var), grad=grad, **slots, **numbers, **locks)


class LazyAdamOptimizer(tf1.train.AdamOptimizer):
    """Adam that updates only the rows of an embedding that have a gradient, and their moments.

    `tf.compat.v1.train.AdamOptimizer` decays all moments at each update and moves all rows by them,
    so the time grows with the size of the table. The bias correction counts all updates. If each
    batch reads all rows, the results are equal.
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


class NadamOptimizer(Kernel, tf1.train.AdamOptimizer):
    """Adam with Nesterov's momentum.

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.
    """

    kernel = "Adam"
    slots: ClassVar[Mapping[str, str]] = {"m": "m", "v": "v"}

    def _numbers(self, var: Any) -> dict[str, Any]:
        power1, power2 = self._get_beta_accumulators()
        powers = {"beta1_power": power1, "beta2_power": power2}
        betas = {"beta1": self._beta1_t, "beta2": self._beta2_t}
        last = {"lr": self._lr_t, "epsilon": self._epsilon_t, "use_nesterov": True}
        return {**powers, **betas, **last}

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        # As in Adam, all moments decay.
        numbers = self._numbers(var)
        numbers.pop("use_nesterov")
        n = {name: tf1.cast(value, var.dtype.base_dtype) for name, value in numbers.items()}
        rate = n["lr"] * tf1.sqrt(1 - n["beta2_power"]) / (1 - n["beta1_power"])
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        step = grad * (1 - n["beta1"])
        locks = {"use_locking": self._use_locking}
        with tf1.control_dependencies([tf1.assign(m, m * n["beta1"], **locks)]):
            m_new = scatter_add(m, indices, step)
        with tf1.control_dependencies([tf1.assign(v, v * n["beta2"], **locks)]):
            v_new = scatter_add(v, indices, tf1.square(grad) * (1 - n["beta2"]))
        ahead = step + n["beta1"] * tf1.gather(m_new, indices)
        root = tf1.sqrt(tf1.gather(v_new, indices))
        return done(scatter_add(var, indices, -rate * ahead / (root + n["epsilon"])), m_new, v_new)


class AdamGSOptimizer(tf1.train.AdamOptimizer):
    """Adam whose bias correction uses a global step, which another optimizer increments."""

    def __init__(
        self,
        global_step: Any = 0,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step

    def _get_beta_accumulators(self) -> Any:
        return tuple(beta**self._step for beta in (self._beta1_t, self._beta2_t))

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _prepare(self) -> None:
        self._step = tf1.cast(tf1.identity(self._global_step) + 1, tf1.float32)
        super()._prepare()

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        return tf1.group(*update_ops, name=name_scope)


class RMSPropOptimizer(tf1.train.RMSPropOptimizer):
    """`tf.contrib.optimizer_v2.RMSPropOptimizer`, which uses epsilon in another way.

    Epsilon is the initial value of the averages, and is not added to them in updates.
    """

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            first = tf1.fill(variable.shape, tf1.cast(self._epsilon, variable.dtype.base_dtype))
            self._get_or_make_slot(variable, first, "rms", self._name)
            if self._centered:
                self._zeros_slot(variable, "mg", self._name)
            self._zeros_slot(variable, "momentum", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        self._epsilon_tensor = tf1.constant(0.0)


class AdaMaxOptimizer(Kernel, tf1.train.AdamOptimizer):
    """Adam with a decaying maximum of the gradients in place of the second moment.

    For an embedding it updates only the rows that have a gradient, and their moments.
    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, section 7.1.
    """

    kernel = "AdaMax"
    slots: ClassVar[Mapping[str, str]] = {"m": "m", "v": "v"}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        with tf1.init_scope():
            graph = None if tf1.executing_eagerly() else tf1.get_default_graph()
            return self._get_non_slot_variable("beta1_power", graph=graph)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # All tasks select the same variable.
        first = min(var_list, key=lambda variable: str(variable.name))
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _numbers(self, var: Any) -> dict[str, Any]:
        betas = {"beta1": self._beta1_t, "beta2": self._beta2_t}
        power = {"beta1_power": self._get_beta_accumulators()}
        return {**betas, **power, "lr": self._lr_t, "epsilon": self._epsilon_t}

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        numbers = self._numbers(var).items()
        n = {name: tf1.cast(value, var.dtype.base_dtype) for name, value in numbers}
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = n["beta1"] * tf1.gather(m, indices) + (1 - n["beta1"]) * grad
        v_rows = tf1.maximum(n["beta2"] * tf1.gather(v, indices), tf1.abs(grad))
        change = -n["lr"] / (1 - n["beta1_power"]) * m_rows / (v_rows + n["epsilon"])
        locks = {"use_locking": self._use_locking}
        return done(
            tf1.scatter_update(m, indices, m_rows, **locks),
            tf1.scatter_update(v, indices, v_rows, **locks),
            scatter_add(var, indices, change),
        )

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with tf1.control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            updated = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return tf1.group(*update_ops, updated, name=name_scope)


class LARSOptimizer(Kernel, tf1.train.MomentumOptimizer):
    """Momentum with a learning rate per variable, from its norm and the norm of its gradient.

    Source: You, Gitman and Ginsburg, Large Batch Training of Convolutional Networks, 2017.
    """

    kernel = "Momentum"
    slots: ClassVar[Mapping[str, str]] = {"accum": "momentum"}

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        for word, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"{word} should be positive: {value}")
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        # Parts of the names of variables that have the unscaled rate.
        self._skip_list = skip_list or ()

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """Returns the learning rate of a variable, and its gradient with weight decay."""
        if any(part in var.name for part in self._skip_list):
            return self._learning_rate, grad
        size, slope = tf1.norm(var, ord=2), tf1.norm(grad, ord=2)
        trust = self._eeta * size / (slope + self._weight_decay * size + self._epsilon)
        is_known = tf1.logical_and(size > 0, slope > 0)
        rate = self._learning_rate * tf1.where(is_known, trust, tf1.ones_like(trust))
        return rate, grad + self._weight_decay * var

    def _numbers(self, var: Any) -> dict[str, Any]:
        return {"lr": 1.0, "momentum": self._momentum, "use_nesterov": self._use_nesterov}

    def _apply_by(self, prefix: str, grad: Any, var: Any, of: Callable[[Any], Any]) -> Any:
        rate, grad = self.compute_lr(grad, var)
        return super()._apply_by(prefix, grad * rate, var, of)
