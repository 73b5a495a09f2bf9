"""The network of 2016: 784 pixels, 100 sigmoid units, 10 classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat import tf
from models.initial import normal, zeros


class MLP(tf.Module):
    """A multilayer perceptron of 784, 100 and 10 units, with sigmoid activations.

    Args:
      seed: seed of the weights; equal seeds give equal weights on every runtime.
      initial: initializer of the weights: "normal" is N(0, 1), as in the 2016 example; "scaled"
        divides by the square root of the number of inputs. Biases are 0.
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
          training: ignored; the network has no dropout.

        Returns:
          Logits, float32 `[batch, 10]`.
        """
        del training
        hidden = tf.sigmoid(tf.matmul(images, self.hidden_kernel) + self.hidden_bias)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias

    @property
    def first_layer(self) -> Any:
        """The first layer's weights, `[784, 100]`: one image per hidden unit."""
        return self.hidden_kernel
