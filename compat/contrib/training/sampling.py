"""Sampling of `tf.contrib.training`: examples are repeated or left out, at random."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1

_averages: Any = importlib.import_module("tensorflow.python.training.moving_averages")
_SMOOTHING = 10  # Examples of each class that are taken to be seen at the begin.
_TOLERANCE = 1e-6  # Of the sum of probabilities.


def resample_at_rate(
    inputs: Sequence[Any],
    rates: Any,
    scope: str | None = None,
    seed: int | None = None,
    back_prop: bool = False,
) -> list[Any]:
    """Returns each row of a batch as often as a Poisson distribution says.

    Args:
      inputs: tensors `[batch, ...]`.
      rates: how often each row is returned on average, `[batch]`.
      scope: of the operations.
      seed: of the distribution.
      back_prop: whether gradients pass through the choice.
    """
    with tf1.name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = tf1.convert_to_tensor(rates)
        counts = tf1.cast(tf1.random_poisson(rates, [], rates.dtype, seed=seed), tf1.int32)
        rows = tf1.repeat(tf1.range(tf1.size(counts)), counts)
        if not back_prop:
            rows = tf1.stop_gradient(rows)
        return [tf1.gather(each, rows) for each in inputs]


def weighted_resample(
    inputs: Sequence[Any],
    weights: Any,
    overall_rate: Any,
    scope: str | None = None,
    mean_decay: Any = 0.999,
    seed: int | None = None,
) -> tuple[list[Any], Any]:
    """Resamples rows at rates in proportion to their weights.

    The rates are on average `overall_rate`, by a moving average of the weights.

    Returns:
      The tensors, as of `resample_at_rate`, and the rate of each of their rows.
    """
    with tf1.name_scope(scope, "weighted_resample", list(inputs)) as inner:
        with tf1.variable_scope(scope, "estimate_mean", list(inputs)):
            estimate = tf1.get_local_variable(
                "estimated_mean", initializer=tf1.cast(0, weights.dtype), dtype=weights.dtype
            )
            batch = tf1.reduce_mean(weights)
            mean = _averages.assign_moving_average(estimate, batch, mean_decay)
        rates = weights * overall_rate / mean
        found = resample_at_rate([rates, *inputs], rates, inner, seed)
        return found[1:], found[0]


def rejection_sample(
    tensors: Sequence[Any],
    accept_prob_fn: Callable[[list[Any]], Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Makes batches of examples that are accepted at random.

    Args:
      tensors: of one example, or `[batch, ...]` if `enqueue_many`.
      accept_prob_fn: returns the probability of an example, of its tensors.
      batch_size: of the batches.
      queue_threads: how many threads make them.
      enqueue_many: whether `tensors` are batches.
      prebatch_capacity: of the queue that takes these apart.
      prebatch_threads: of this queue.
      runtime_checks: whether probabilities are checked.
      name: of the scope.
    """
    with tf1.variable_scope(name, "rejection_sample", tensors):
        example = [tf1.convert_to_tensor(each) for each in tensors]
        if enqueue_many:
            example = _apart(example, prebatch_threads, prebatch_capacity)
        accepted = accept_prob_fn(example)
        if runtime_checks:
            checks = [tf1.assert_less_equal(0.0, accepted), tf1.assert_less_equal(accepted, 1.0)]
            with tf1.control_dependencies(checks):
                accepted = tf1.identity(accepted, name="prob_with_checks")
        return _kept(example, accepted, batch_size, queue_threads)


def stratified_sample(
    tensors: Sequence[Any],
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Any], Any]:
    """Makes batches in which classes have given shares, by leaving examples out at random.

    Args:
      tensors: of one example, or `[batch, ...]` if `enqueue_many`.
      labels: the class of the example, or of each; an integer.
      target_probs: the share of each class, `[classes]`; they sum to one.
      batch_size: of the batches.
      init_probs: the shares in the data; by default those of the examples so far.
      enqueue_many: whether `tensors` are batches.
      queue_capacity: of the queue of examples.
      threads_per_queue: of this queue, and of that of batches.
      name: of the scope.

    Raises:
      ValueError: if shares are not vectors of one length, or labels are not a vector of the batch.
    """
    with tf1.name_scope(name, "stratified_sample", [*tensors, labels]):
        example = [tf1.convert_to_tensor(each) for each in tensors]
        labels = tf1.convert_to_tensor(labels)
        if not enqueue_many:
            example = [tf1.expand_dims(each, 0) for each in example]
            labels = tf1.expand_dims(labels, 0)
        labels.shape.assert_has_rank(1)
        wanted = _shares(tf1.convert_to_tensor(target_probs, tf1.float32))
        classes = wanted.shape.num_elements()
        if init_probs is None:
            init_probs = _seen(labels, classes)
        known = _shares(tf1.convert_to_tensor(init_probs, tf1.float32))
        if known.shape.num_elements() != classes:
            raise ValueError("Probability parameters must have the same length.")
        is_possible = tf1.reduce_all(tf1.logical_or(known > 0, tf1.equal(wanted, 0)))
        why = "All classes with zero initial probability must also have zero target probability: "
        checks = [tf1.Assert(is_possible, [why, known, wanted])]
        size = tf1.shape(labels)[0]
        checks += [tf1.assert_equal(tf1.shape(each)[0], size) for each in example]
        checks += [tf1.assert_non_negative(labels)]
        checks += [tf1.assert_less(labels, tf1.cast(classes, labels.dtype))]
        with tf1.control_dependencies(checks):
            labels = tf1.identity(labels)
        ratio = wanted / known
        ratio = tf1.where(tf1.is_nan(ratio), tf1.zeros_like(ratio), ratio)
        accepted = ratio / tf1.reduce_max(ratio)
        *values, label = _apart([*example, labels], threads_per_queue, queue_capacity)
        chance = tf1.gather(accepted, label)
        *data, label = _kept([*values, label], chance, batch_size, threads_per_queue)
        return data, label


def _shares(probabilities: Any) -> Any:
    """Returns probabilities, which are checked."""
    probabilities.shape.assert_is_fully_defined()
    probabilities.shape.assert_has_rank(1)
    total = tf1.reduce_sum(probabilities)
    checks = [
        tf1.assert_non_negative(probabilities),
        tf1.assert_less(tf1.abs(total - 1.0), _TOLERANCE),
    ]
    with tf1.control_dependencies(checks):
        return tf1.identity(probabilities)


def _seen(labels: Any, classes: int) -> Any:
    """Returns the shares of the classes so far, these labels included."""
    count = tf1.Variable(
        [_SMOOTHING] * classes, trainable=False, name="class_count", dtype=tf1.int64
    )
    counts = count.assign_add(tf1.reduce_sum(tf1.one_hot(labels, classes, dtype=tf1.int64), 0))
    counts += 0  # A copy, since another thread may count on.
    return tf1.cast(tf1.truediv(counts, tf1.reduce_sum(counts)), tf1.float32)


def _apart(tensors: Sequence[Any], threads: int, capacity: int) -> list[Any]:
    """Returns the tensors of one example of a batch at a time."""
    batches = tf1.train.batch(list(tensors), 1, threads, capacity, enqueue_many=True)
    return [tf1.squeeze(each, [0]) for each in tf1.nest.flatten(batches)]


def _kept(tensors: Sequence[Any], chance: Any, batch_size: int, threads: int) -> list[Any]:
    """Returns batches of the examples that are kept by chance."""
    keep = tf1.random_uniform([]) < chance
    return tf1.nest.flatten(tf1.train.maybe_batch(list(tensors), keep, batch_size, threads))
