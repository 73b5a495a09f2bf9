"""Creates optimizers by name, and decays and clips gradients."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import numpy as np

from compat import UserError, tf, tf1
from compat._tensorflow import private
from compat.contrib.opt.adaptive import LazyAdamOptimizer, done
from compat.contrib.opt.decay import AdamWOptimizer


def create(name: str, learning_rate: Any, weight_decay: float = 0.0) -> Any:
    """Returns a new optimizer by its name: one of `tf.compat.v1.train`, AdamW or one for tables.

    "lazy_adam" and "rowwise_adagrad" are for tables. `weight_decay` is for AdamW alone, as in
    PyTorch and Keras: an update subtracts this share of each variable, times the learning rate. For
    other optimizers `regularised` adds the decay.
    """
    makers = {
        "sgd": tf1.train.GradientDescentOptimizer,
        "momentum": functools.partial(tf1.train.MomentumOptimizer, momentum=0.9),
        "adam": tf1.train.AdamOptimizer,
        "adamw": lambda rate: AdamWOptimizer(weight_decay * rate, rate),
        "adagrad": tf1.train.AdagradOptimizer,
        "ftrl": tf1.train.FtrlOptimizer,
        "lazy_adam": LazyAdamOptimizer,
        "rowwise_adagrad": RowwiseAdagrad,
    }
    if name not in makers:
        raise UserError(f"optimizer {name!r} is unknown; choose one of {', '.join(makers)}")
    return makers[name](learning_rate)


def regularised(
    pairs: Sequence[tuple[Any, Any]], weight_decay: float, clip_norm: float
) -> list[tuple[Any, Any]]:
    """Adds weight decay to gradients, and clips them to a global norm; 0 turns either off.

    Decay adds `weight_decay` times each variable to its gradient; to a sparse gradient, only for
    the rows that the batch has read. Source of the clipping: Pascanu et al., On the difficulty of
    training recurrent neural networks, 2013.
    """
    gradients, variables = [gradient for gradient, _ in pairs], [variable for _, variable in pairs]
    if weight_decay:
        gradients = [_decayed(*pair, weight_decay) for pair in pairs]
    if clip_norm:
        gradients, _ = tf.clip_by_global_norm(gradients, clip_norm)
    return list(zip(gradients, variables))


def _decayed(gradient: Any, variable: Any, weight_decay: float) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        rows, _ = tf.unique(gradient.indices)
        return tf.IndexedSlices(
            tf.concat([gradient.values, weight_decay * tf.gather(variable, rows)], axis=0),
            tf.concat([gradient.indices, rows], axis=0),
            gradient.dense_shape,
        )
    return gradient + weight_decay * variable


class Every(tf1.train.Optimizer):
    """An optimizer that applies another one in every `steps`-th step, and nothing in the others."""

    def __init__(self, steps: int, optimizer: Any) -> None:
        super().__init__(use_locking=False, name=f"every_{steps}_steps")
        self._steps, self._optimizer = steps, optimizer
        self._count: Any = None

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        if self._count is None:
            # It has its own count, since the global step does not count the updates that a worker
            # makes between two messages. Like slots, the count is made outside of a branch.
            with tf.init_scope():
                self._count = tf.Variable(np.int64(0), trainable=False, name=self.get_name())
        with tf1.device(self._count.device):
            counted = self._count.assign_add(1, read_value=False)
            with tf.control_dependencies([getattr(counted, "op", counted)]):
                is_due = tf.equal(self._count.read_value() % self._steps, 0)

        def update() -> Any:
            with tf.control_dependencies([self._optimizer.apply_gradients(pairs)]):
                return tf.constant(True)

        done = tf.cond(is_due, update, lambda: tf.constant(False))
        with tf.control_dependencies([done]):
            if global_step is None:
                return tf.no_op()
            return global_step.assign_add(1, read_value=False)

    def variables(self) -> list[Any]:
        return [self._count, *self._optimizer.variables()]

    def get_slot(self, var: Any, name: str) -> Any:
        return self._optimizer.get_slot(var, name)


class RowwiseAdagrad(tf1.train.AdagradOptimizer):
    """Adagrad with one accumulator for each row of a table, of the mean of its squared gradients.

    So for a table of width 64, the accumulators need 1/64 of the memory that Adagrad needs. A
    variable with a dense gradient has an accumulator for each of its numbers, as in Adagrad.

    Source: Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation
    Systems, 2019, whose code has it as `RowWiseSparseAdagrad`.
    """

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        pairs = list(pairs)
        self._tables = {id(v) for gradient, v in pairs if isinstance(gradient, tf.IndexedSlices)}
        return super().apply_gradients(pairs, global_step, name)

    def _create_slots(self, var_list: Any) -> None:
        super()._create_slots([var for var in var_list if id(var) not in self._tables])
        first = tf1.constant_initializer(self._initial_accumulator_value)
        for var in var_list:
            if id(var) in self._tables:
                options = (first, var.shape[:1], var.dtype.base_dtype, "accumulator", self._name)
                _with_own_slice(self._get_or_make_slot_with_initializer(var, *options))

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        accumulator = self.get_slot(var, "accumulator")
        rate = tf.cast(self._learning_rate_tensor, grad.dtype)
        axes = list(range(1, grad.shape.rank))
        added = tf.reduce_mean(grad**2, axis=axes, keepdims=True)
        found = tf.gather(accumulator, indices) + tf.reshape(added, [-1])
        scale = rate * tf1.rsqrt(tf.reshape(found, tf.shape(added)))
        return done(
            tf1.scatter_update(accumulator, indices, found),
            tf1.scatter_sub(var, indices, scale * grad),
        )


def _with_own_slice(slot: Any) -> None:
    """Corrects the slice info of one part of a slot that has one number for each row of a table.

    TensorFlow 1.15 copies that of the table, with all dimensions; remove this with that release.
    """
    part = private.slice_info(slot)
    if part is not None and len(part.full_shape) > 1:
        shapes = (part.full_shape, part.var_offset, part.var_shape)
        own = type(part)(part.full_name, *[shape[:1] for shape in shapes])
        private.set_slice_info(slot, own)
