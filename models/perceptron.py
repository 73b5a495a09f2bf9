"""Dense layers with rectified linear units, as a function in the style of TensorFlow 1.x."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from compat import tf, tf1
from models.mlp import normal


def perceptron(
    name: str,
    inputs: Any,
    units: Sequence[int],
    seed: int = 1,
    activated: bool = True,
    precision: str = "float32",
) -> Any:
    """Returns the units of the last layer, float32 `[batch, units[-1]]`.

    Args:
      name: of the scope of its variables.
      inputs: float32 `[batch, n]`.
      units: of each layer.
      seed: of the weights.
      activated: whether the last layer has an activation.
      precision: of the products; "bfloat16" is quicker where the processor has it (AMX, AVX512).
        Weights, their updates, sums and activations are float32 always.
    """
    random = np.random.RandomState(seed)
    found = inputs
    for number, size in enumerate(units):
        before = int(found.shape[-1])
        kernel = normal(random, [before, size], (2 / before) ** 0.5)
        with tf1.variable_scope(f"{name}/{number}"):
            weights = tf1.get_variable("kernel", initializer=kernel)
            bias = tf1.get_variable("bias", initializer=np.zeros(size, np.float32))
        given, weights = tf.cast(found, precision), tf.cast(weights, precision)
        found = tf.nn.bias_add(tf.cast(tf.matmul(given, weights), tf.float32), bias)
        if activated or number < len(units) - 1:
            found = tf.nn.relu(found)
    return found
