"""The network of 2016: 784 pixels, 100 sigmoid units, 10 classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat import tf
from models.initial import normal, zeros


class MLP(tf.Module):
    """784-100-10, with sigmoid units.

    Args:
      seed: of the weights; the same seed gives the same weights on every runtime.
      initial: "normal" draws the weights from N(0, 1), as the 2016 example does; "scaled" divides
        them by the square root of a unit's inputs, with which it learns better. Biases are 0.
    """

    def __init__(self, seed: int = 1, initial: str = "normal") -> None:
        super().__init__(name="mlp")
        random = np.random.RandomState(seed)
        scaled = initial == "scaled"
        self.hidden_kernel = tf.Variable(
            normal(random, [784, 100], 784**-0.5 if scaled else 1.0), name="hidden/kernel"
        )
        self.output_kernel = tf.Variable(
            normal(random, [100, 10], 100**-0.5 if scaled else 1.0), name="output/kernel"
        )
        self.hidden_bias = tf.Variable(zeros([100]), name="hidden/bias")
        self.output_bias = tf.Variable(zeros([10]), name="output/bias")

    def __call__(self, images: Any, training: bool = False) -> Any:
        """Classifies images.

        Args:
          images: float32 `[batch, 784]`, in [0, 1].
          training: makes no difference to this network.

        Returns:
          Logits, float32 `[batch, 10]`.
        """
        del training
        hidden = tf.sigmoid(tf.matmul(images, self.hidden_kernel) + self.hidden_bias)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias

    @property
    def first_layer(self) -> Any:
        """The first layer's weights, `[784, 100]`: an image of the input for each unit."""
        return self.hidden_kernel
