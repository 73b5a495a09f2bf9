"""Losses of `tf.nn.seq2seq`, `tf.contrib.legacy_seq2seq` and `tf.contrib.seq2seq`."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1


def _cross_entropy(logits: Any, targets: Any, function: Callable[..., Any] | None) -> Any:
    """Returns the loss of each example, float32 `[batch]`.

    Args:
      logits: float32 `[batch, symbols]`.
      targets: integers `[batch]`.
      function: custom loss of (inputs, labels) or (labels, logits); None for softmax.
    """
    if function is None:
        return tf1.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf1.reshape(targets, [-1]), logits=logits
        )
    try:
        names = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = set()
    if {"labels", "logits"} <= names:
        return function(labels=targets, logits=logits)
    if {"labels", "inputs"} <= names:
        return function(labels=targets, inputs=logits)
    first = next(iter(names), "")
    return function(targets, logits) if "label" in first else function(logits, targets)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the weighted loss of each sequence, in nats, float32 `[batch]`.

    Args:
      logits: float32 `[batch, symbols]` for each time step.
      targets: integers `[batch]` for each time step.
      weights: float32 `[batch]` for each time step.
      average_across_timesteps: whether to divide by the sum of the weights.
      softmax_loss_function: replaces the softmax loss.
      name: name of the operations.

    Raises:
      ValueError: the three differ in length.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            f"got {len(logits)} logits, {len(targets)} targets and {len(weights)} weights; "
            "each time needs one of each"
        )
    with tf1.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        total = tf1.add_n(
            [
                _cross_entropy(logit, target, softmax_loss_function) * weight
                for logit, target, weight in zip(logits, targets, weights)
            ]
        )
        if average_across_timesteps:
            total /= tf1.add_n(list(weights)) + 1e-12  # Avoids division by zero.
    return total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the sum of `sequence_loss_by_example`, by default divided by the batch; a scalar."""
    with tf1.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        loss = tf1.reduce_sum(losses)
        if average_across_batch:
            loss /= tf1.cast(tf1.shape(targets[0])[0], loss.dtype)
    return loss


def sequence_loss_3d(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the weighted loss in nats: `tf.contrib.seq2seq.sequence_loss`.

    Args:
      logits: float32 `[batch, time, symbols]`.
      targets: integers `[batch, time]`.
      weights: float32 `[batch, time]`.
      average_across_timesteps: whether to average over time.
      average_across_batch: whether to average over the batch.
      sum_over_timesteps: whether to sum over time and divide by the number of nonzero weights.
      sum_over_batch: whether to do so over the batch.
      softmax_loss_function: function of (labels, logits) that replaces the softmax loss.
      name: name of the operations.
    """
    with tf1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        symbols = tf1.shape(logits)[2]
        losses = _cross_entropy(
            tf1.reshape(logits, [-1, symbols]), tf1.reshape(targets, [-1]), softmax_loss_function
        ) * tf1.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return tf1.reduce_sum(losses) / (tf1.reduce_sum(weights) + 1e-12)
        if sum_over_timesteps and sum_over_batch:
            count = tf1.cast(tf1.math.count_nonzero(weights), losses.dtype)
            return tf1.math.divide_no_nan(tf1.reduce_sum(losses), count)
        losses = tf1.reshape(losses, tf1.shape(logits)[:2])
        for axis, average, add in (
            (0, average_across_batch, sum_over_batch),
            (1, average_across_timesteps, sum_over_timesteps),
        ):
            if average:
                return tf1.reduce_sum(losses, axis) / (tf1.reduce_sum(weights, axis) + 1e-12)
            if add:
                count = tf1.cast(tf1.math.count_nonzero(weights, axis), losses.dtype)
                return tf1.math.divide_no_nan(tf1.reduce_sum(losses, axis), count)
    return losses
