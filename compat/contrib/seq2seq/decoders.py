"""`dynamic_decode`, the loop of a decoder, and `BasicDecoder`, with inputs from a `Helper`."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from compat._tensorflow import tf1
from compat.contrib.rnn import cells
from compat.contrib.seq2seq.inputs import Helper, rnn

nest = tf1.nest


class Decoder:
    """Base class; subclasses define its methods, `batch_size`, `output_size` and `output_dtype`."""

    # Whether `step` returns the finished state of all sequences, not only of those of this step.
    tracks_own_finished = False
    batch_size: Any = property()
    output_size: Any = property()
    output_dtype: Any = property()

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Returns whether sequences are finished, bool `[batch]`, the first inputs and state."""
        raise NotImplementedError

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """Returns outputs, the next state and inputs, and whether sequences are finished."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Returns the outputs over time and the last state, for `dynamic_decode` to return."""
        raise NotImplementedError


class BasicDecoderOutput(NamedTuple):
    """The output of a cell, and the symbols that the helper selected from it."""

    rnn_output: Any
    sample_id: Any


def output_size(cell: Any, output_layer: Any) -> Any:
    """Returns the shapes of a cell's outputs, after the output layer if any, without the batch."""
    if output_layer is None:
        return cell.output_size
    shapes = nest.map_structure(
        lambda size: tf1.TensorShape([None]).concatenate(size), cell.output_size
    )
    return nest.map_structure(lambda shape: shape[1:], output_layer.compute_output_shape(shapes))


class BasicDecoder(Decoder):
    """Calls a cell, and selects symbols from its outputs by a `Helper`."""

    def __init__(
        self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None
    ) -> None:
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    batch_size = property(lambda self: self._helper.batch_size)

    @property
    def output_size(self) -> Any:
        size = output_size(self._cell, self._output_layer)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        dtype = nest.flatten(self._initial_state)[0].dtype
        size = output_size(self._cell, self._output_layer)
        return BasicDecoderOutput(
            nest.map_structure(lambda _: dtype, size), self._helper.sample_ids_dtype
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        return (*self._helper.initialize(), self._initial_state)

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with tf1.name_scope(name, "BasicDecoderStep", (time, inputs, state)):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=ids
            )
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


def _array(dtype: Any, size: Any, batch_size: Any) -> Any:
    """Returns an array over time for values of these sizes."""
    shape = None
    if isinstance(size, tf1.TensorShape) and size.ndims != 0:
        batch = tf1.get_static_value(tf1.convert_to_tensor(batch_size))
        shape = tf1.TensorShape([batch]).concatenate(size)
    return tf1.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)


def dynamic_decode(  # noqa: C901
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Returns the outputs `[batch, time, ...]`, the last state and the lengths, int32 `[batch]`.

    With `impute_finished`, outputs beyond the end of a sequence are zero, and its state is
    constant.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with tf1.variable_scope(scope, "decoder") as variables:
        if rnn._should_cache() and variables.caching_device is None:
            variables.set_caching_device(lambda op: op.device)
        finished, inputs, state = decoder.initialize()
        if maximum_iterations is not None:
            maximum_iterations = tf1.convert_to_tensor(maximum_iterations, tf1.int32)
            if maximum_iterations.shape.ndims != 0:
                raise ValueError("maximum_iterations must be a scalar")
            finished = tf1.logical_or(finished, maximum_iterations <= 0)
        sizes, dtypes, batch = decoder.output_size, decoder.output_dtype, decoder.batch_size
        zeros = nest.map_structure(
            lambda size, dtype: cells._zero_state_tensors(size, batch, dtype), sizes, dtypes
        )
        arrays = nest.map_structure(lambda s, d: _array(d, s, batch), sizes, dtypes)

        def body(
            time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
        ) -> tuple[Any, ...]:
            outputs, next_state, next_inputs, ended = decoder.step(time, inputs, state)
            if not decoder.tracks_own_finished:
                ended = tf1.logical_or(ended, finished)
            now = tf1.fill(tf1.shape(lengths), time + 1)
            lengths = tf1.where(tf1.logical_not(finished), now, lengths)
            for old, new in ((state, next_state), (arrays, outputs), (inputs, next_inputs)):
                nest.assert_same_structure(old, new)

            def kept(new: Any, old: Any) -> Any:
                if isinstance(old, tf1.TensorArray):
                    return new
                new.set_shape(old.shape)
                return new if new.shape.ndims == 0 else tf1.where(finished, old, new)

            if impute_finished:
                outputs = nest.map_structure(
                    lambda output, zero: tf1.where(finished, zero, output), outputs, zeros
                )
                next_state = nest.map_structure(kept, next_state, state)
            arrays = nest.map_structure(lambda a, output: a.write(time, output), arrays, outputs)
            return time + 1, arrays, next_state, next_inputs, ended, lengths

        lengths = tf1.zeros_like(finished, dtype=tf1.int32)
        _, arrays, state, _, _, lengths = tf1.while_loop(
            lambda *values: tf1.logical_not(tf1.reduce_all(values[4])),
            body,
            (tf1.constant(0), arrays, state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations,
            maximum_iterations=maximum_iterations,
            swap_memory=swap_memory,
        )
        outputs = nest.map_structure(lambda array: array.stack(), arrays)
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(rnn._transpose_batch_time, outputs)
    return outputs, state, lengths
