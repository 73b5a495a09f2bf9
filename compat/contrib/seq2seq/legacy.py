"""`tf.contrib.legacy_seq2seq`, `tf.nn.seq2seq` until 0.12: decoders over lists of time steps."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1
from compat.contrib.rnn import attention
from compat.contrib.rnn.attention import attention_decoder, outputs_of
from compat.contrib.rnn.cells import EmbeddingWrapper, OutputProjectionWrapper, separate
from compat.contrib.seq2seq.sequence_loss import sequence_loss, sequence_loss_by_example

linear = attention.linear  # Scripts also use this name.


def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Returns the outputs of a cell over time, and its last state.

    A `loop_function` computes the next input from the last output and the time.
    """
    with tf1.variable_scope(scope or "rnn_decoder"):
        return outputs_of(cell, decoder_inputs, initial_state, loop_function)


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Encodes with a copy of the cell and decodes with the cell."""
    with tf1.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf1.nn.static_rnn(separate(cell), encoder_inputs, dtype=dtype or tf1.float32)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Encodes and decodes with one cell."""
    with tf1.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = tf1.nn.static_rnn(cell, encoder_inputs, dtype=dtype or tf1.float32, scope=scope)
        with tf1.variable_scope(scope, reuse=True):
            return outputs_of(cell, decoder_inputs, state, loop_function)


def _embedded(
    symbols: Sequence[Any],
    shape: Sequence[int],
    output_projection: Any,
    feed_previous: bool,
    update_embedding: bool,
) -> tuple[list[Any], Callable[[Any, int], Any] | None]:
    """Returns embedded symbols, and a loop function that embeds an output's likeliest symbol."""
    embedding = tf1.get_variable("embedding", shape)

    def loop(previous: Any, _: int) -> Any:
        if output_projection is not None:
            previous = tf1.matmul(previous, output_projection[0]) + output_projection[1]
        embedded = tf1.nn.embedding_lookup(embedding, tf1.argmax(previous, 1))
        return embedded if update_embedding else tf1.stop_gradient(embedded)

    inputs = [tf1.nn.embedding_lookup(embedding, each) for each in symbols]
    return inputs, loop if feed_previous else None


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs `rnn_decoder` on embedded symbols, integers `[batch]` for each time step."""
    with tf1.variable_scope(scope or "embedding_rnn_decoder"):
        shape, update = [num_symbols, embedding_size], update_embedding_for_previous
        inputs, loop = _embedded(decoder_inputs, shape, output_projection, feed_previous, update)
        return rnn_decoder(inputs, initial_state, cell, loop)


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Runs `attention_decoder` on embedded symbols, integers `[batch]` for each time step."""
    with tf1.variable_scope(scope or "embedding_attention_decoder"):
        shape, update = [num_symbols, embedding_size], update_embedding_for_previous
        inputs, loop = _embedded(decoder_inputs, shape, output_projection, feed_previous, update)
        return attention_decoder(
            inputs,
            initial_state,
            attention_states,
            cell,
            output_size,
            num_heads,
            loop,
            initial_state_attention=initial_state_attention,
        )


def _fed_or_not(
    decode: Callable[[bool], tuple[list[Any], Any]], feed_previous: Any
) -> tuple[list[Any], Any]:
    """Decodes with a bool or a bool tensor `feed_previous`; both branches share their variables."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    structure: list[Any] = []

    def flat(feed: bool) -> list[Any]:
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=True if structure else None):
            structure.append(decode(feed))
        return list(tf1.nest.flatten(structure[-1]))

    values = tf1.cond(feed_previous, lambda: flat(True), lambda: flat(False))
    outputs, state = tf1.nest.pack_sequence_as(structure[0], values)
    return outputs, state


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Encodes and decodes symbols, integers `[batch]` for each time step."""
    with tf1.variable_scope(scope or "embedding_rnn_seq2seq"):
        encoder = EmbeddingWrapper(separate(cell), num_encoder_symbols, embedding_size)
        _, state = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=dtype or tf1.float32)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        size = (num_decoder_symbols, embedding_size)
        return _fed_or_not(
            lambda feed: embedding_rnn_decoder(
                decoder_inputs, state, cell, *size, output_projection, feed
            ),
            feed_previous,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Encodes symbols and decodes them with attention to the encoder's outputs."""
    with tf1.variable_scope(scope or "embedding_attention_seq2seq"):
        encoder = EmbeddingWrapper(separate(cell), num_encoder_symbols, embedding_size)
        outputs, state = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=dtype or tf1.float32)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        return _fed_or_not(
            lambda feed: embedding_attention_decoder(
                decoder_inputs,
                state,
                tf1.stack(outputs, 1),
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_projection=output_projection,
                feed_previous=feed,
                initial_state_attention=initial_state_attention,
            ),
            feed_previous,
        )


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], tuple[list[Any], Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """Returns the outputs and losses of each bucket (input length, output length)."""
    outputs: list[Any] = []
    losses: list[Any] = []
    loss = functools.partial(
        sequence_loss_by_example if per_example_loss else sequence_loss,
        softmax_loss_function=softmax_loss_function,
    )
    with tf1.name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs]):
        for number, (source, target) in enumerate(buckets):
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=True if number else None):
                bucket, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
            outputs.append(bucket)
            losses.append(loss(bucket, targets[:target], weights[:target]))
    return outputs, losses
