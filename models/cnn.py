"""A small convolutional network that reaches 99 % on MNIST in five epochs with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat import tf
from models.mlp import normal


class CNN(tf.Module):
    """Two convolutions with pooling and one dense layer with dropout, with ReLU activations.

    Args:
      seed: seed of weights and dropout; equal seeds give equal weights on every runtime.
    """

    def __init__(self, seed: int = 1) -> None:
        super().__init__(name="cnn")
        self._seed = seed
        random = np.random.RandomState(seed)

        def layer(name: str, *shape: int) -> Any:
            # He et al., Delving Deep into Rectifiers, 2015, equation 10; the last axis is outputs.
            stddev = np.sqrt(2.0 / np.prod(shape[:-1]))
            kernel = tf.Variable(normal(random, shape, stddev), name=name + "/kernel")
            return kernel, tf.Variable(np.zeros(shape[-1:], np.float32), name=name + "/bias")

        self.conv1_kernel, self.conv1_bias = layer("conv1", 5, 5, 1, 32)
        self.conv2_kernel, self.conv2_bias = layer("conv2", 5, 5, 32, 64)
        self.dense_kernel, self.dense_bias = layer("dense", 7 * 7 * 64, 128)
        self.output_kernel, self.output_bias = layer("output", 128, 10)

    def __call__(self, images: Any, training: bool = False) -> Any:
        """Returns logits, float32 `[batch, 10]`, of images, float32 `[batch, 784]`, in [0, 1].

        In training, half of the dense units are dropped at random.
        """
        maps = tf.reshape(images, [-1, 28, 28, 1])
        maps = tf.nn.relu(tf.nn.conv2d(maps, self.conv1_kernel, 1, "SAME") + self.conv1_bias)
        maps = tf.nn.max_pool2d(maps, 2, 2, "SAME")  # [batch, 14, 14, 32]
        maps = tf.nn.relu(tf.nn.conv2d(maps, self.conv2_kernel, 1, "SAME") + self.conv2_bias)
        maps = tf.nn.max_pool2d(maps, 2, 2, "SAME")  # [batch, 7, 7, 64]
        flat = tf.reshape(maps, [-1, 7 * 7 * 64])
        dense = tf.nn.relu(tf.matmul(flat, self.dense_kernel) + self.dense_bias)
        if training:
            dense = tf.nn.dropout(dense, rate=0.5, seed=self._seed)
        return tf.matmul(dense, self.output_kernel) + self.output_bias

    @property
    def first_layer(self) -> Any:
        """The first layer's weights, `[5, 5, 1, 32]`: one filter per feature map."""
        return self.conv1_kernel
