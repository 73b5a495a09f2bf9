"""Scheduled sampling: a decoder that reads its own output with a probability.

Source: Bengio et al., Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks,
2015.
"""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1
from compat.contrib.seq2seq.inputs import (
    TrainingHelper,
    categorical,
    embedding_function,
    rnn,
    unstacked,
)

nest = tf1.nest


def _probability(value: Any) -> Any:
    probability = tf1.convert_to_tensor(value, name="sampling_probability")
    if probability.shape.ndims not in (0, 1):
        raise ValueError(
            "sampling_probability must be either a scalar or a vector. "
            f"saw shape: {probability.shape}"
        )
    return probability


def _mixed(chosen: Any, inputs: Any, sampled: Callable[[Any], Any]) -> Any:
    """Returns the inputs; those of `chosen`, bool `[batch]`, are replaced by `sampled(indices)`."""
    yes = tf1.cast(tf1.where(chosen), tf1.int32)
    no = tf1.cast(tf1.where(tf1.logical_not(chosen)), tf1.int32)
    shape = tf1.shape(inputs)
    kept = tf1.scatter_nd(no, tf1.gather_nd(inputs, no), shape)
    return tf1.scatter_nd(yes, sampled(yes), shape) + kept


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Reads, with a probability, a random symbol of the last output instead of the correct one."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._sampling_probability = _probability(sampling_probability)
        self._seed, self._scheduling_seed = seed, scheduling_seed
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Returns the sampled symbols, or -1 for sequences without a sample."""
        random = tf1.random_uniform(
            [self.batch_size], seed=self._scheduling_seed, dtype=self._sampling_probability.dtype
        )
        ids = categorical(outputs, self._seed)
        return tf1.where(random < self._sampling_probability, ids, -tf1.ones_like(ids))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished, inputs, state = super().next_inputs(time, outputs, state)

        def mixed() -> Any:
            embed = lambda yes: self._embedding_fn(tf1.gather_nd(sample_ids, yes))  # noqa: E731
            return _mixed(sample_ids > -1, inputs, embed)

        return finished, tf1.cond(tf1.reduce_all(finished), lambda: inputs, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Reads, with a probability, the last output instead of the correct input."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        self._sampling_probability = _probability(sampling_probability)
        self._seed, self._next_inputs_fn, self._auxiliary = seed, next_inputs_fn, None
        if auxiliary_inputs is not None:
            inputs = nest.map_structure(
                lambda a, b: tf1.concat([a, b], -1), inputs, auxiliary_inputs
            )
            if not time_major:
                auxiliary_inputs = nest.map_structure(
                    lambda each: rnn._transpose_batch_time(tf1.convert_to_tensor(each)),
                    auxiliary_inputs,
                )
            self._auxiliary = nest.map_structure(unstacked, auxiliary_inputs)
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Returns 1 for sequences with a sample, else 0."""
        random = tf1.random_uniform(
            [self.batch_size], seed=self._seed, dtype=self._sampling_probability.dtype
        )
        return tf1.cast(random < self._sampling_probability, tf1.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished, inputs, state = super().next_inputs(time, outputs, state)
        chosen = tf1.cast(sample_ids, tf1.bool)

        def whole(values: Any, indices: Any = None) -> Any:
            if self._auxiliary is None:
                return values
            more = nest.map_structure(lambda each: each.read(time + 1), self._auxiliary)
            if indices is not None:
                more = nest.map_structure(lambda each: tf1.gather_nd(each, indices), more)
            return nest.map_structure(lambda a, b: tf1.concat([a, b], -1), values, more)

        def mixed() -> Any:
            if self._next_inputs_fn is None:
                return tf1.where(chosen, whole(outputs), inputs)
            make = self._next_inputs_fn
            return _mixed(chosen, inputs, lambda yes: whole(make(tf1.gather_nd(outputs, yes)), yes))

        same = tf1.logical_or(tf1.reduce_all(finished), tf1.logical_not(tf1.reduce_any(chosen)))
        return finished, tf1.cond(same, lambda: inputs, mixed), state
