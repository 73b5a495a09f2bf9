"""Encoders of symbol sequences: `tf.contrib.layers.embed_sequence` and related functions."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """Returns the embedding of each symbol, `[batch, length, embed_dim]`; ignores `unique`."""
    if not reuse and (vocab_size is None or embed_dim is None):
        raise ValueError("Must specify vocab size and embedding dimension when not reusing.")
    with tf1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        embeddings = tf1.get_variable(
            "embeddings",
            shape=None if vocab_size is None else [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        return tf1.nn.embedding_lookup(embeddings, ids)


def bow_encoder(ids: Any, vocab_size: int, embed_dim: int, *args: Any, **kwargs: Any) -> Any:
    """Returns the mean embedding of the symbols, float32 `[batch, embed_dim]`."""
    kwargs.pop("sparse_lookup", None)
    with tf1.variable_scope(kwargs.pop("scope", None), "BowEncoder"):
        return tf1.reduce_mean(embed_sequence(ids, vocab_size, embed_dim, *args, **kwargs), 1)


def embedding_lookup_unique(params: Any, ids: Any, name: str | None = None) -> Any:
    """Returns the rows of `ids`; contrib's version looked up each id once."""
    return tf1.nn.embedding_lookup(params, ids, name=name)
