"""Losses of `tf.nn.seq2seq`, `tf.contrib.legacy_seq2seq` and `tf.contrib.seq2seq`."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1


def _cross_entropy(logits: Any, targets: Any, function: Callable[..., Any] | None) -> Any:
    """Returns the loss of each example, float32 `[batch]`; by default softmax cross-entropy.

    The names of `function`'s parameters decide whether it gets the logits or the labels first.
    """
    if function is None:
        return tf1.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf1.reshape(targets, [-1]), logits=logits
        )
    names: list[str] = []
    with contextlib.suppress(TypeError, ValueError):  # Some built-in functions have no signature.
        names = list(inspect.signature(function).parameters)
    for name in ("logits", "inputs"):
        if {"labels", name} <= set(names):
            return function(**{"labels": targets, name: logits})
    is_labels_first = bool(names) and "label" in names[0]
    return function(targets, logits) if is_labels_first else function(logits, targets)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the weighted loss of each sequence, in nats, float32 `[batch]`.

    For each time step, logits are float32 `[batch, symbols]`, targets integers `[batch]`, and
    weights float32 `[batch]`. With `average_across_timesteps`, the loss of a sequence is divided by
    the sum of its weights.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            f"got {len(logits)} logits, {len(targets)} targets and {len(weights)} weights; "
            "each time needs one of each"
        )
    with tf1.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = [
            _cross_entropy(logit, target, softmax_loss_function) * weight
            for logit, target, weight in zip(logits, targets, weights)
        ]
        total = tf1.add_n(losses)
        if average_across_timesteps:
            total /= tf1.add_n(list(weights)) + 1e-12  # The term avoids a division by zero.
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
    """Returns the sum of `sequence_loss_by_example`, by default divided by the batch size."""
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

    Logits are float32 `[batch, time, symbols]`, targets and weights `[batch, time]`. To average,
    the summed loss is divided by the sum of the weights. With `sum_over_*`, TensorFlow divides it
    by the number of nonzero weights.
    """
    with tf1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        symbols = tf1.shape(logits)[2]
        losses = _cross_entropy(
            tf1.reshape(logits, [-1, symbols]), tf1.reshape(targets, [-1]), softmax_loss_function
        ) * tf1.reshape(weights, [-1])
        losses = tf1.reshape(losses, tf1.shape(logits)[:2])
        average_all = average_across_timesteps and average_across_batch
        for axis, average, add in (
            (None, average_all, sum_over_timesteps and sum_over_batch),
            (0, average_across_batch, sum_over_batch),
            (1, average_across_timesteps, sum_over_timesteps),
        ):
            if average:
                return tf1.reduce_sum(losses, axis) / (tf1.reduce_sum(weights, axis) + 1e-12)
            if add:
                count = tf1.cast(tf1.math.count_nonzero(weights, axis), losses.dtype)
                return tf1.math.divide_no_nan(tf1.reduce_sum(losses, axis), count)
    return losses
