"""The next inputs of a decoder: the correct symbols, the most likely ones, or random ones."""

from __future__ import annotations

import importlib
from typing import Any, Callable

from compat._tensorflow import tf1

rnn: Any = importlib.import_module("tensorflow.python.ops.rnn")
nest = tf1.nest


def embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """Returns `embedding` if it is a function, or else a function that looks up its rows."""
    return embedding if callable(embedding) else lambda ids: tf1.nn.embedding_lookup(embedding, ids)


def tokens(start: Any, end: Any) -> tuple[Any, Any]:
    """Returns the start tokens, int32 `[batch]`, and the end token, a scalar."""
    start = tf1.convert_to_tensor(start, tf1.int32, name="start_tokens")
    end = tf1.convert_to_tensor(end, tf1.int32, name="end_token")
    if start.shape.ndims != 1:
        raise ValueError("start_tokens must be a vector")
    if end.shape.ndims != 0:
        raise ValueError("end_token must be a scalar")
    return start, end


class Helper:
    """Base class for the inputs of a `BasicDecoder`; subclasses define three methods."""

    sample_ids_shape = tf1.TensorShape([])
    sample_ids_dtype = tf1.int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns whether sequences are finished, bool `[batch]`, and the first inputs."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Returns the symbols selected from the outputs, int32 `[batch]`."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Returns whether sequences are finished, the next inputs, and the state."""
        raise NotImplementedError


class CustomHelper(Helper):
    """Calls functions of the user."""

    def __init__(
        self,
        initialize_fn: Callable[[], tuple[Any, Any]],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._batch_size: Any = None
        self.sample = sample_fn  # type: ignore[method-assign]
        self.next_inputs = next_inputs_fn  # type: ignore[method-assign]
        self.sample_ids_shape = tf1.TensorShape(sample_ids_shape or [])
        self.sample_ids_dtype = sample_ids_dtype or tf1.int32

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = tf1.size(finished)
        return finished, inputs


class TrainingHelper(Helper):
    """Reads float32 `[batch, time, size]`, or `[time, batch, size]` if `time_major`."""

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        with tf1.name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            inputs = nest.map_structure(tf1.convert_to_tensor, inputs)
            self.inputs = inputs
            if not time_major:
                inputs = nest.map_structure(rnn._transpose_batch_time, inputs)
            self._input_tas = nest.map_structure(unstacked, inputs)
            self.sequence_length = tf1.convert_to_tensor(sequence_length, name="sequence_length")
            if self.sequence_length.shape.ndims != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self.sequence_length.shape}"
                )
            self._zero_inputs = nest.map_structure(lambda each: tf1.zeros_like(each[0]), inputs)
            self.batch_size = tf1.size(sequence_length)

    def _read(self, finished: Any, time: Any) -> Any:
        read = lambda: nest.map_structure(lambda each: each.read(time), self._input_tas)  # noqa: E731
        return tf1.cond(tf1.reduce_all(finished), lambda: self._zero_inputs, read)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished = tf1.equal(0, self.sequence_length)
        return finished, self._read(finished, 0)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        return tf1.cast(tf1.argmax(outputs, axis=-1), tf1.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = time + 1 >= self.sequence_length
        return finished, self._read(finished, time + 1), state


def unstacked(value: Any) -> Any:
    """Returns an array over time of a tensor `[time, batch, ...]`."""
    array = tf1.TensorArray(value.dtype, tf1.shape(value)[0], element_shape=value.shape[1:])
    return array.unstack(value)


def categorical(logits: Any, seed: int | None) -> Any:
    """Returns a random symbol for each row, by the softmax of logits, int32 `[batch]`."""
    return tf1.multinomial(logits, 1, seed=seed, output_dtype=tf1.int32)[:, 0]


class GreedyEmbeddingHelper(Helper):
    """Reads the most likely symbol of the last output, until it is `end_token`."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens, self._end_token = tokens(start_tokens, end_token)
        self.batch_size = tf1.size(start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf1.tile([False], [self.batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        if not isinstance(outputs, tf1.Tensor):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        return tf1.argmax(outputs, axis=-1, output_type=tf1.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = tf1.equal(sample_ids, self._end_token)
        inputs = tf1.cond(
            tf1.reduce_all(finished),
            lambda: self._start_inputs,
            lambda: self._embedding_fn(sample_ids),
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Reads a random symbol, by the softmax of the last output, until it is `end_token`."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        if self._softmax_temperature is not None:
            outputs = outputs / self._softmax_temperature
        return categorical(outputs, self._seed)


class InferenceHelper(Helper):
    """Reads the result of a function of the user, which receives the last output."""

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_shape, self.sample_ids_dtype = tf1.TensorShape(sample_shape), sample_dtype
        self._start_inputs = tf1.convert_to_tensor(start_inputs, name="start_inputs")
        self.batch_size = tf1.shape(start_inputs)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf1.tile([False], [self.batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        make = self._next_inputs_fn or (lambda ids: ids)
        return self._end_fn(sample_ids), make(sample_ids), state
