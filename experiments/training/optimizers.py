"""Optimizers by name, and what is done to gradients before they are applied."""

from __future__ import annotations

import functools
from typing import Any, Sequence

from compat import UserError, tf, tf1
from experiments.training.row_optimizers import LazyAdam, RowwiseAdagrad


def create(name: str, learning_rate: Any) -> Any:
    """Returns an optimizer by its name: those of `tf.compat.v1.train`, and two for tables."""
    makers = {
        "sgd": tf1.train.GradientDescentOptimizer,
        "momentum": functools.partial(tf1.train.MomentumOptimizer, momentum=0.9),
        "adam": tf1.train.AdamOptimizer,
        "adagrad": tf1.train.AdagradOptimizer,
        "ftrl": tf1.train.FtrlOptimizer,
        "lazy_adam": LazyAdam,
        "rowwise_adagrad": RowwiseAdagrad,
    }
    if name not in makers:
        raise UserError(f"optimizer {name!r} is unknown; choose one of {', '.join(makers)}")
    return makers[name](learning_rate)


def regularised(
    pairs: Sequence[tuple[Any, Any]], weight_decay: float, clip_norm: float
) -> list[tuple[Any, Any]]:
    """Adds weight decay to gradients, and clips them to a global norm; 0: neither.

    Decay adds a part of each variable to its gradient; of a sparse one only to the rows that the
    batch has read. Source of the clipping: Pascanu et al., On the difficulty of training recurrent
    neural networks, 2013.
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
