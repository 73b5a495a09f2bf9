"""Feature columns, built on `tf.feature_column`, and encoders of `tf.contrib.layers`."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, Sequence

from compat._tensorflow import tf1

UNNAMED = "inputs"  # The column "" was the input as a single tensor; columns need a name now.
_columns = tf1.feature_column


def by_name(features: Any) -> dict[str, Any]:
    """Returns features by column name; a single tensor, or the name "", gets the name `UNNAMED`."""
    if not isinstance(features, Mapping):
        return {UNNAMED: features}
    return {name or UNNAMED: feature for name, feature in features.items()}


def real_valued_column(
    column_name: str,
    dimension: int | None = 1,
    default_value: Any = None,
    dtype: Any = None,
    normalizer: Callable[[Any], Any] | None = None,
) -> Any:
    """Returns a numeric column of width `dimension`."""
    name, shape = column_name or UNNAMED, (dimension or 1,)
    return _columns.numeric_column(name, shape, default_value, dtype or tf1.float32, normalizer)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = None, **kwargs: Any
) -> Any:
    """Returns a hashed categorical column; the hash differs from contrib's."""
    return _columns.categorical_column_with_hash_bucket(
        column_name, hash_bucket_size, dtype or tf1.string
    )


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = None, **kwargs: Any
) -> Any:
    """Returns a categorical column of integers in [0, bucket_size)."""
    return _columns.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = None
) -> Any:
    """Returns a categorical column with the vocabulary `keys`."""
    return _columns.categorical_column_with_vocabulary_list(
        column_name, list(keys), dtype, default_value
    )


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = None,
) -> Any:
    """Returns a categorical column with the lines of a file as vocabulary."""
    return _columns.categorical_column_with_vocabulary_file(
        column_name,
        vocabulary_file,
        vocabulary_size=vocab_size,
        num_oov_buckets=num_oov_buckets,
        default_value=None if num_oov_buckets else default_value,
        dtype=dtype or tf1.string,
    )


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: Any = None
) -> Any:
    """Returns a categorical column weighted by another feature."""
    return _columns.weighted_categorical_column(
        sparse_id_column, weight_column_name, dtype or tf1.float32
    )


def one_hot_column(sparse_id_column: Any) -> Any:
    """Returns a dense column with one value per category."""
    return _columns.indicator_column(sparse_id_column)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str | None = "mean",
    initializer: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Returns a dense column with an embedding of each category."""
    if initializer is None:  # As in contrib, the scale depends on the number of categories.
        stddev = 1 / math.sqrt(sparse_id_column.num_buckets)
        initializer = tf1.truncated_normal_initializer(stddev=stddev)
    combiner = combiner or "mean"
    return _columns.embedding_column(
        sparse_id_column, dimension, combiner, initializer, *args, **kwargs
    )


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """Returns a numeric column, bucketized by boundaries."""
    return _columns.bucketized_column(source_column, list(boundaries))


def crossed_column(
    columns: Sequence[Any], hash_bucket_size: int, combiner: str = "sum", **kwargs: Any
) -> Any:
    """Returns a hashed column of feature crosses; the hash differs from contrib's."""
    # Hashed columns are crossed by their values; today's function requires the feature name.
    keys = [
        column.key if hasattr(column, "hash_bucket_size") and hasattr(column, "key") else column
        for column in columns
    ]
    return _columns.crossed_column(keys, hash_bucket_size, hash_key=kwargs.get("hash_key"))


def create_feature_spec_for_parsing(feature_columns: Sequence[Any]) -> dict[str, Any]:
    """Returns the feature specification of the columns for `tf.parse_example`."""
    return dict(_columns.make_parse_example_spec(list(feature_columns)))


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Sequence[Any], name: str | None = None, **kwargs: Any
) -> dict[str, Any]:
    """Returns the features of serialized examples, by name."""
    spec = create_feature_spec_for_parsing(feature_columns)
    return dict(tf1.parse_example(serialized, spec, name=name))


def input_from_feature_columns(
    columns_to_tensors: Any,
    feature_columns: Sequence[Any],
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
    **kwargs: Any,
) -> Any:
    """Returns the concatenated dense columns, float32 `[batch, width]`."""
    with tf1.variable_scope(scope, "input_from_feature_columns"):
        return _columns.input_layer(
            by_name(columns_to_tensors), list(feature_columns), weight_collections, trainable
        )


def weighted_sum_from_feature_columns(
    columns_to_tensors: Any,
    feature_columns: Sequence[Any],
    num_outputs: int,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, dict[Any, Any], Any]:
    """Returns the output of a linear model, its variables by column, and its bias."""
    weights: dict[Any, Any] = {}
    with tf1.variable_scope(scope, "weighted_sum_from_feature_columns"):
        output = _columns.linear_model(
            by_name(columns_to_tensors),
            list(feature_columns),
            units=num_outputs,
            weight_collections=weight_collections,
            trainable=trainable,
            cols_to_vars=weights,
        )
    bias = weights.pop("bias")
    return output, weights, bias[0] if isinstance(bias, list) else bias


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
        shape = None if vocab_size is None else [vocab_size, embed_dim]
        embeddings = tf1.get_variable(
            "embeddings", shape, None, initializer, regularizer, trainable
        )
        return tf1.nn.embedding_lookup(embeddings, ids)


def bow_encoder(ids: Any, vocab_size: int, embed_dim: int, *args: Any, **kwargs: Any) -> Any:
    """Returns the mean embedding of the symbols, float32 `[batch, embed_dim]`."""
    kwargs.pop("sparse_lookup", None)
    with tf1.variable_scope(kwargs.pop("scope", None), "BowEncoder"):
        return tf1.reduce_mean(embed_sequence(ids, vocab_size, embed_dim, *args, **kwargs), 1)


def embedding_lookup_unique(params: Any, ids: Any, name: str | None = None) -> Any:
    """Returns the rows of `ids`; the version in contrib looked up each id only once."""
    return tf1.nn.embedding_lookup(params, ids, name=name)
