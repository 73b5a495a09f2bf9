"""Optimizers by name, and what is done to gradients before they are applied."""

from __future__ import annotations

from typing import Any, Sequence

from compat import UserError, tf, tf1

NAMES = ("sgd", "momentum", "adam", "adagrad")


def create(name: str, learning_rate: Any) -> Any:
    """Returns the optimizer `name` of `tf.compat.v1.train`.

    Args:
      name: one of `NAMES`.
      learning_rate: a float, or a scalar tensor.

    Raises:
      UserError: the name is unknown.
    """
    if name == "momentum":
        return tf1.train.MomentumOptimizer(learning_rate, momentum=0.9)
    if name == "adam":
        return tf1.train.AdamOptimizer(learning_rate)
    if name == "adagrad":
        return tf1.train.AdagradOptimizer(learning_rate)
    if name != "sgd":
        raise UserError(f"optimizer {name!r} is unknown; choose one of {', '.join(NAMES)}")
    return tf1.train.GradientDescentOptimizer(learning_rate)


def regularised(
    pairs: Sequence[tuple[Any, Any]], weight_decay: float, clip_norm: float
) -> list[tuple[Any, Any]]:
    """Adds weight decay to gradients, and clips them to a global norm.

    Args:
      pairs: (gradient, variable).
      weight_decay: factor of the variable that is added to its gradient, as PyTorch's optimizers
        do; of a sparse gradient only the rows that the batch has read decay. 0: none.
      clip_norm: the largest norm of all gradients together; 0: they are not clipped.
        Source: Pascanu et al., On the difficulty of training recurrent neural networks, 2013.
    """
    gradients = [gradient for gradient, _ in pairs]
    variables = [variable for _, variable in pairs]
    if weight_decay:
        gradients = [_decayed(*pair, weight_decay) for pair in zip(gradients, variables)]
    if clip_norm:
        gradients, _ = tf.clip_by_global_norm(gradients, clip_norm)
    return list(zip(gradients, variables))


def _decayed(gradient: Any, variable: Any, weight_decay: float) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        rows, _ = tf.unique(gradient.indices)
        decay = tf.IndexedSlices(weight_decay * tf.gather(variable, rows), rows)
        return tf.IndexedSlices(
            tf.concat([gradient.values, decay.values], axis=0),
            tf.concat([gradient.indices, decay.indices], axis=0),
            gradient.dense_shape,
        )
    return gradient + weight_decay * variable
