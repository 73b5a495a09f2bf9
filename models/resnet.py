"""A small residual network, for clothing as for digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat import tf
from models.mlp import normal

_WIDTHS = (16, 32, 64)  # Feature maps of each stage; each but the first halves height and width.


class ResNet(tf.Module):
    """A convolution, three residual blocks, the mean over each map and one dense layer.

    He et al., Deep Residual Learning for Image Recognition, 2015, without batch normalization, the
    moving means of which all workers would write. Instead the last convolution of a block is 0 at
    first, so that the block returns its input, as in Zhang et al., Fixup Initialization, 2019.

    Args:
      seed: seed of the weights; equal seeds give equal weights on every runtime.
    """

    def __init__(self, seed: int = 1) -> None:
        super().__init__(name="resnet")
        random = np.random.RandomState(seed)

        def layer(name: str, *shape: int, gain: float = 2.0) -> tuple[Any, Any]:
            # He et al., Delving Deep into Rectifiers, 2015, equation 10; the last axis is outputs.
            stddev = np.sqrt(gain / np.prod(shape[:-1]))
            kernel = tf.Variable(normal(random, shape, stddev), name=name + "/kernel")
            return kernel, tf.Variable(np.zeros(shape[-1:], np.float32), name=name + "/bias")

        self._input = layer("input", 3, 3, 1, _WIDTHS[0])
        self._blocks = []
        inputs = _WIDTHS[0]
        for number, width in enumerate(_WIDTHS, start=1):
            name = f"block{number}"
            first = layer(name + "/conv1", 3, 3, inputs, width)
            last = layer(name + "/conv2", 3, 3, width, width, gain=0.0)
            # Where the numbers of maps differ, the input passes by through a convolution of 1 x 1.
            skips = inputs == width
            past = None if skips else layer(name + "/shortcut", 1, 1, inputs, width, gain=1.0)
            self._blocks.append((first, last, past))
            inputs = width
        self._output = layer("output", inputs, 10, gain=1.0)

    def __call__(self, images: Any, training: bool = False) -> Any:
        """Returns logits, float32 `[batch, 10]`, of images, float32 `[batch, 784]`, in [0, 1]."""
        del training  # It has no dropout.
        maps = tf.nn.relu(_convolve(tf.reshape(images, [-1, 28, 28, 1]), self._input))
        for first, last, past in self._blocks:
            if past is not None:
                maps = tf.nn.avg_pool2d(maps, 2, 2, "SAME")
            found = _convolve(tf.nn.relu(_convolve(maps, first)), last)
            maps = tf.nn.relu(found + (maps if past is None else _convolve(maps, past)))
        kernel, bias = self._output
        return tf.matmul(tf.reduce_mean(maps, [1, 2]), kernel) + bias

    @property
    def first_layer(self) -> Any:
        """The first layer's weights, `[3, 3, 1, 16]`: one filter per feature map."""
        return self._input[0]


def _convolve(maps: Any, layer: tuple[Any, Any]) -> Any:
    kernel, bias = layer
    return tf.nn.conv2d(maps, kernel, 1, "SAME") + bias
