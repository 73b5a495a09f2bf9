"""Optimizers that touch only those rows of a table that a batch has read.

Each takes dense gradients as well, and then makes the update of the dense optimizer.
"""

from __future__ import annotations

from typing import Any

from compat import tf, tf1
from compat._tensorflow import private


class LazyAdam(tf1.train.AdamOptimizer):
    """Adam, of which the moments of a row stand still while no batch reads it.

    `tf.compat.v1.train.AdamOptimizer` lets all moments of a table decay at each update, and moves
    all of its rows by them, which takes as long as the table is large. Here both happen at the
    updates by a batch that reads the row; the correction of the bias counts all updates. Where each
    batch reads all rows, both are the same.

    Source: `tf.contrib.opt.LazyAdamOptimizer` of TensorFlow 1.x.
    """

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._on_rows(var, indices, grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._on_rows(var, grad.indices, grad.values)

    def _on_rows(self, var: Any, rows: Any, gradient: Any) -> Any:
        powers = [tf.cast(power, gradient.dtype) for power in self._get_beta_accumulators()]
        names = ("_lr_t", "_beta1_t", "_beta2_t", "_epsilon_t")
        rate, beta1, beta2, epsilon = (tf.cast(getattr(self, n), gradient.dtype) for n in names)
        rate = rate * tf.sqrt(1 - powers[1]) / (1 - powers[0])
        mean, square = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = beta1 * tf.gather(mean, rows) + (1 - beta1) * gradient
        second = beta2 * tf.gather(square, rows) + (1 - beta2) * gradient**2
        return _done(
            tf1.scatter_update(mean, rows, first),
            tf1.scatter_update(square, rows, second),
            tf1.scatter_sub(var, rows, rate * first / (tf.sqrt(second) + epsilon)),
        )


class RowwiseAdagrad(tf1.train.AdagradOptimizer):
    """Adagrad with one accumulator for each row of a table, of the mean of its squared gradients.

    So a table of width 64 takes 1/64 of Adagrad's memory beside it. What has a dense gradient has
    an accumulator for each of its numbers, as in Adagrad.

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
                shape, dtype = var.shape[:1], var.dtype.base_dtype
                name = "accumulator"
                _with_own_slice(
                    self._get_or_make_slot_with_initializer(
                        var, first, shape, dtype, name, self._name
                    )
                )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._on_rows(var, indices, grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._on_rows(var, grad.indices, grad.values)

    def _on_rows(self, var: Any, rows: Any, gradient: Any) -> Any:
        accumulator = self.get_slot(var, "accumulator")
        rate = tf.cast(self._learning_rate_tensor, gradient.dtype)
        axes = list(range(1, gradient.shape.rank))
        added = tf.reduce_mean(gradient**2, axis=axes, keepdims=True)
        found = tf.gather(accumulator, rows) + tf.reshape(added, [-1])
        scale = rate * tf1.rsqrt(tf.reshape(found, tf.shape(added)))
        return _done(
            tf1.scatter_update(accumulator, rows, found),
            tf1.scatter_sub(var, rows, scale * gradient),
        )


def _with_own_slice(slot: Any) -> None:
    """Makes a part of a slot with one dimension a part of a whole with one dimension.

    TensorFlow 1.15 gives it the shape of the table; remove with that line.
    """
    part = private.slice_info(slot)
    if part is not None and len(part.full_shape) > 1:
        shapes = (part.full_shape, part.var_offset, part.var_shape)
        own = type(part)(part.full_name, *[shape[:1] for shape in shapes])
        private.set_slice_info(slot, own)


def _done(*updated: Any) -> Any:
    """Returns an operation that is done when the variables have been updated."""
    return tf.group(*(getattr(variable, "op", variable) for variable in updated))
