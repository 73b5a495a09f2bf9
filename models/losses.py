"""The loss and the accuracy of a classifier."""

from __future__ import annotations

from typing import Any

from compat import tf


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns the mean negative log-likelihood, in nats per example, a float32 scalar.

    Computed from logits: the logarithm of a softmax, as in the 2016 example, is infinite once a
    probability underflows.

    Args:
      logits: float32 `[batch, classes]`, unnormalised.
      labels: int32 `[batch]`, each in `[0, classes)`.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def accuracy(logits: Any, labels: Any) -> Any:
    """Returns the fraction of examples whose largest logit is at the label, a float32 scalar.

    Args:
      logits: float32 `[batch, classes]`.
      labels: int32 `[batch]`.
    """
    found = tf.argmax(logits, axis=1, output_type=tf.int32)
    return tf.reduce_mean(tf.cast(tf.equal(found, labels), tf.float32))
