"""`tensorflow.examples.tutorials.mnist.mnist`: the two-layer network of the first tutorial."""

from __future__ import annotations

import math
from typing import Any

from compat._tensorflow import tf1

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """Returns logits, float32 `[batch, 10]`, of images, float32 `[batch, 784]`."""
    layers = (("hidden1", hidden1_units), ("hidden2", hidden2_units), ("softmax_linear", 10))
    values, size = images, IMAGE_PIXELS
    for name, units in layers:
        with tf1.name_scope(name):
            first = tf1.truncated_normal([size, units], stddev=1.0 / math.sqrt(float(size)))
            weights = tf1.Variable(first, name="weights")
            biases = tf1.Variable(tf1.zeros([units]), name="biases")
            values = tf1.matmul(values, weights) + biases
            if name != "softmax_linear":
                values = tf1.nn.relu(values)
        size = units
    return values


def loss(logits: Any, labels: Any) -> Any:
    """Returns the mean cross-entropy, in nats per example; labels are int32 `[batch]`."""
    labels = tf1.cast(labels, tf1.int64)
    costs = tf1.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits, name="xentropy"
    )
    return tf1.reduce_mean(costs, name="xentropy_mean")


def training(loss: Any, learning_rate: float) -> Any:
    """Returns the operation that runs a step of gradient descent."""
    tf1.summary.scalar("loss", loss)
    optimizer = tf1.train.GradientDescentOptimizer(learning_rate)
    global_step = tf1.Variable(0, name="global_step", trainable=False)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """Returns the number of correct predictions in a batch, int32."""
    correct = tf1.nn.in_top_k(logits, labels, 1)
    return tf1.reduce_sum(tf1.cast(correct, tf1.int32))
