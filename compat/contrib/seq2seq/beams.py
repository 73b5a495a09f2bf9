"""Beam search: `tf.contrib.seq2seq.BeamSearchDecoder`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compat._tensorflow import tf1
from compat.contrib.seq2seq import inputs as symbols
from compat.contrib.seq2seq.decoders import Decoder, output_size
from compat.contrib.seq2seq.trees import gather_tree, gather_tree_from_array
from compat.contrib.seq2seq.wrapper import AttentionWrapperState

nest = tf1.nest


class BeamSearchDecoderState(NamedTuple):
    """The state of a search: log_probs, finished and lengths are `[batch, beam]`."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """The result of a step, each `[batch, beam]`; `parent_ids` are the beams that it continued."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The symbols of each beam, int32 `[batch, time, beam]`, best first, and all outputs."""

    predicted_ids: Any
    beam_search_decoder_output: Any


def _take(beams: Any, values: Any) -> Any:
    """Returns the values `[batch, beam, ...]` of beams, integers `[batch, beam]`."""
    taken = tf1.gather(values, beams, batch_dims=1)
    taken.set_shape(values.shape)
    return taken


class BeamSearchDecoder(Decoder):
    """Continues the `beam_width` best sequences of symbols at each step.

    Source: scores as by Wu et al., Google's Neural Machine Translation System, 2016.
    """

    tracks_own_finished = True

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        self._cell, self._beam_width, self._output_layer = cell, beam_width, output_layer
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._embedding_fn = symbols.embedding_function(embedding)
        start, self._end_token = symbols.tokens(start_tokens, end_token)
        self._batch_size = tf1.size(start_tokens)
        self._initial_cell_state = nest.map_structure(self._split, initial_state, cell.state_size)
        self._start_tokens = tf1.tile(tf1.expand_dims(start, 1), [1, beam_width])
        self._start_inputs = self._embedding_fn(self._start_tokens)

    batch_size = property(lambda self: self._batch_size)

    @property
    def output_size(self) -> Any:
        return BeamSearchDecoderOutput(*[tf1.TensorShape([self._beam_width])] * 3)

    @property
    def output_dtype(self) -> Any:
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        size = output_size(self._cell, self._output_layer)
        scores = nest.map_structure(lambda _: dtype, size)
        return BeamSearchDecoderOutput(scores, tf1.int32, tf1.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        dtype = nest.flatten(self._initial_cell_state)[0].dtype.as_numpy_dtype
        first, depth = tf1.zeros([self._batch_size], tf1.int32), self._beam_width
        finished = tf1.one_hot(first, depth, False, True, dtype=tf1.bool)
        attended = self._attended(self._initial_cell_state)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=tf1.one_hot(first, depth, dtype(0.0), dtype(-np.inf)),
            finished=finished,
            lengths=tf1.zeros([self._batch_size, depth], tf1.int64),
            accumulated_attention_probs=() if attended is None else attended,
        )
        return finished, self._start_inputs, state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with tf1.name_scope(name, "BeamSearchDecoderStep", (time, inputs, state)):
            inputs = nest.map_structure(self._merged, inputs)
            merge = lambda value, _: self._merge(value)  # noqa: E731
            cell_state = nest.map_structure(merge, state.cell_state, self._cell.state_size)
            logits, cell_state = self._cell(inputs, cell_state)
            logits = self._split(logits, logits.shape[1:])
            cell_state = nest.map_structure(self._split, cell_state, self._cell.state_size)
            if self._output_layer is not None:
                logits = self._output_layer(logits)
            output, state = self._continued(logits, cell_state, state)
            inputs = tf1.cond(
                tf1.reduce_all(state.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(output.predicted_ids),
            )
        return output, state, inputs, state.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Returns the symbols of each beam, and the last state, which has the beams' lengths."""
        lengths, parents = final_state.lengths, outputs.parent_ids
        longest = tf1.cast(tf1.reduce_max(lengths, 1), tf1.int32)
        ids = gather_tree(outputs.predicted_ids, parents, longest, self._end_token)
        if self._reorder_tensor_arrays:
            final_state = final_state._replace(
                cell_state=nest.map_structure(
                    lambda value: self._sorted(value, parents, lengths), final_state.cell_state
                )
            )
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _continued(self, logits: Any, cell_state: Any, last: Any) -> tuple[Any, Any]:
        symbols = logits.shape.as_list()[-1] or tf1.shape(logits)[-1]
        log_probs = tf1.nn.log_softmax(logits)
        only_end = tf1.one_hot(
            self._end_token, symbols, tf1.constant(0.0, log_probs.dtype), log_probs.dtype.min
        )
        mask = tf1.tile(tf1.expand_dims(last.finished, 2), [1, 1, symbols])
        log_probs = tf1.where(mask, tf1.zeros_like(log_probs) + only_end, log_probs)
        total = tf1.expand_dims(last.log_probs, 2) + log_probs
        is_open = tf1.cast(tf1.logical_not(last.finished), tf1.int64)
        zero, one = tf1.constant(0, tf1.int64), tf1.constant(1, tf1.int64)
        more = tf1.one_hot(self._end_token, symbols, zero, one) * tf1.expand_dims(is_open, 2)
        lengths = tf1.expand_dims(last.lengths, 2) + more
        attended = self._attended(cell_state)
        if attended is not None:
            is_open = tf1.cast(is_open, tf1.float32)
            attended = last.accumulated_attention_probs + attended * tf1.expand_dims(is_open, 2)
        scores = self._scores(total, lengths, last.finished, attended)
        scores = tf1.reshape(scores, [self._batch_size, -1])
        best, places = tf1.nn.top_k(scores, self._beam_width)
        ids, beams = tf1.mod(places, symbols), tf1.floordiv(places, symbols)
        batch = tf1.get_static_value(self._batch_size)
        for each in (best, places, ids, beams):
            each.set_shape([batch, self._beam_width])
        flat = tf1.reshape(total, [self._batch_size, -1])
        finished = _take(beams, last.finished)
        state = BeamSearchDecoderState(
            cell_state=nest.map_structure(
                lambda value: value if self._is_whole(value, 2) else _take(beams, value), cell_state
            ),
            log_probs=tf1.reshape(tf1.gather(flat, places, batch_dims=1), tf1.shape(places)),
            lengths=_take(beams, last.lengths) + tf1.cast(tf1.logical_not(finished), tf1.int64),
            finished=tf1.logical_or(finished, tf1.equal(ids, self._end_token)),
            accumulated_attention_probs=() if attended is None else _take(beams, attended),
        )
        return BeamSearchDecoderOutput(best, ids, beams), state

    def _scores(self, log_probs: Any, lengths: Any, finished: Any, attended: Any) -> Any:
        weight = self._length_penalty_weight
        if isinstance(weight, tf1.Tensor) or weight != 0:
            penalty = (5.0 + tf1.cast(lengths, tf1.float32)) ** weight / 6.0**weight
            log_probs = log_probs / tf1.cast(penalty, log_probs.dtype)
        if attended is None:
            return log_probs
        attended = tf1.where(tf1.equal(attended, 0.0), tf1.ones_like(attended), attended)
        coverage = tf1.reduce_sum(tf1.log(tf1.minimum(attended, 1.0)), 2)
        coverage *= tf1.cast(finished, tf1.float32) * self._coverage_penalty_weight
        return log_probs + tf1.expand_dims(coverage, 2)

    def _attended(self, state: Any) -> Any:
        """Returns the attention to each position, `[batch, beam, time]`; None without a penalty."""
        weight = self._coverage_penalty_weight
        if not isinstance(weight, tf1.Tensor) and weight == 0.0:
            return None
        states = [state] if isinstance(state, AttentionWrapperState) else state
        alignments = [each.alignments for each in states if isinstance(each, AttentionWrapperState)]
        if not alignments:
            raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
        means = [
            tf1.reduce_mean(tf1.stack(each, -1), -1) if isinstance(each, tuple) else each
            for each in alignments
        ]
        return means[0] if len(means) == 1 else tf1.reduce_mean(tf1.stack(means, -1), -1)

    @staticmethod
    def _is_whole(value: Any, least: int) -> bool:
        """Whether a part of the state is common to all beams: an array, or a rank below `least`."""
        if isinstance(value, tf1.TensorArray):
            return True
        if value.shape.ndims is None:
            raise ValueError(f"Expected tensor ({value}) to have known rank, but ndims == None.")
        return bool(value.shape.ndims < least)

    def _merge(self, value: Any) -> Any:
        return value if self._is_whole(value, 2) else self._merged(value)

    def _merged(self, value: Any) -> Any:
        batch = tf1.get_static_value(self._batch_size)
        rows = self._batch_size * self._beam_width
        merged = tf1.reshape(value, tf1.concat([[rows], tf1.shape(value)[2:]], 0))
        static = None if batch is None else int(batch) * self._beam_width
        merged.set_shape(tf1.TensorShape([static]).concatenate(value.shape[2:]))
        return merged

    def _split(self, value: Any, size: Any) -> Any:
        if self._is_whole(value, 1):
            return value
        size = tf1.TensorShape(None if isinstance(size, tf1.Tensor) else size)
        shape = [self._batch_size, self._beam_width]
        split = tf1.reshape(value, tf1.concat([shape, tf1.shape(value)[1:]], 0))
        static = tf1.TensorShape([tf1.get_static_value(self._batch_size), self._beam_width])
        expected = static.concatenate(size)
        if not split.shape.is_compatible_with(expected):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size.  The "
                f"reshaped tensor has shape: {split.shape}.  We expected it to have shape "
                f"(batch_size, beam_width, depth) == {expected}.  Perhaps you forgot to create a "
                "zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        split.set_shape(expected)
        return split

    def _sorted(self, value: Any, parents: Any, lengths: Any) -> Any:
        """Returns an array over time as one tensor, in the order of the final beams.

        As in 1.15, an array is returned unchanged if its elements have a known number of rows other
        than batch * beam, or a known second dimension.
        """
        if not isinstance(value, tf1.TensorArray) or not value.element_shape.ndims:
            return value
        batch, beams = tf1.get_static_value(self._batch_size), self._beam_width
        rows, columns = (*value.element_shape.as_list(), None)[:2]
        if None not in (batch, rows):
            is_split = not columns or (rows, columns) == (batch, beams)
            if rows != batch * beams or not is_split:
                return value
        return gather_tree_from_array(value.stack(), parents, lengths)
