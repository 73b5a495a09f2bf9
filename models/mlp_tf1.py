"""The network of `models.mlp` as a TensorFlow 1.x function.

`compat.step` runs it unchanged on the legacy runtime, and lifts it onto the modern one. Your own
functions that use `get_variable`, `tf.losses` and `Optimizer.minimize` work in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compat import tf1
from models.mlp import normal


def model_fn(images: Any, labels: Any, optimizer: Any, seed: int = 1) -> dict[str, Any]:
    """Builds one training step.

    Args:
      images: float32 `[batch, 784]`, in [0, 1].
      labels: int32 `[batch]`.
      optimizer: an optimizer of `tf.compat.v1.train`.
      seed: seed of the weights; `models.MLP` has the same weights for the same seed.

    Returns:
      `cost`, in nats per example, and `accuracy`, in [0, 1], both before `train`, the operation
      that runs the step.
    """
    random = np.random.RandomState(seed)

    def dense(inputs: Any, units: int) -> Any:
        weights = normal(random, [int(inputs.shape[1]), units])
        kernel = tf1.get_variable("kernel", initializer=weights)
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        return tf1.matmul(inputs, kernel) + bias

    with tf1.variable_scope("hidden"):
        hidden = tf1.sigmoid(dense(images, 100))
    with tf1.variable_scope("output"):
        logits = dense(hidden, 10)
    cost = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    correct = tf1.nn.in_top_k(logits, labels, 1)
    accuracy = tf1.reduce_mean(tf1.cast(correct, tf1.float32))
    train = optimizer.minimize(cost, global_step=tf1.train.get_global_step())
    return {"cost": cost, "accuracy": accuracy, "train": train}
