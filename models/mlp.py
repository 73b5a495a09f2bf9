"""The network of 2016: 784 pixels, 100 sigmoid units, 10 classes."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from compat import tf


def normal(random: np.random.RandomState, shape: Sequence[int], stddev: float = 1.0) -> np.ndarray:
    """Returns float32 `shape` of mean 0: from NumPy, so that every release has the same values."""
    return (stddev * random.standard_normal(tuple(shape))).astype(np.float32)


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

        def kernel(name: str, inputs: int, units: int) -> Any:
            stddev = inputs**-0.5 if initial == "scaled" else 1.0
            return tf.Variable(normal(random, [inputs, units], stddev), name=name)

        self.hidden_kernel = kernel("hidden/kernel", 784, 100)
        self.output_kernel = kernel("output/kernel", 100, 10)
        self.hidden_bias = tf.Variable(np.zeros([100], np.float32), name="hidden/bias")
        self.output_bias = tf.Variable(np.zeros([10], np.float32), name="output/bias")

    def __call__(self, images: Any, training: bool = False) -> Any:
        """Returns logits, float32 `[batch, 10]`, of images, float32 `[batch, 784]`, in [0, 1]."""
        del training  # It has no dropout.
        hidden = tf.sigmoid(tf.matmul(images, self.hidden_kernel) + self.hidden_bias)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias

    @property
    def first_layer(self) -> Any:
        """The first layer's weights, `[784, 100]`: one image per hidden unit."""
        return self.hidden_kernel
