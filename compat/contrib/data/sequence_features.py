"""`tf.contrib.feature_column.sequence_input_layer`, as in TensorFlow 1.8 to 1.15."""

from __future__ import annotations

import collections
import importlib
from typing import Any, Mapping, Sequence

from compat._tensorflow import tf1

_new: Any = importlib.import_module("tensorflow.python.feature_column.feature_column_v2")
_old: Any = importlib.import_module("tensorflow.python.feature_column.feature_column")

SequenceInputLayer = collections.namedtuple(
    "SequenceInputLayer", "sequence_input_layer sequence_length"
)


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
) -> SequenceInputLayer:
    """Returns the input of a recurrent network, and the lengths of its sequences.

    Args:
        features: The tensors of the columns, by key.
        feature_columns: Embedding, shared embedding, indicator and numeric columns of sequences.
        weight_collections: Further collections of the variables of embeddings.
        trainable: Whether these variables are trained.

    Returns:
        The columns, in the order of their names, float32 `[batch, time, width]`; the lengths,
        int64 `[batch]`. Variables are named "sequence_input_layer/COLUMN/embedding_weights".

    Raises:
        ValueError: If a column is not a dense column of sequences, or two have the same name.
    """
    kinds = (_old._SequenceDenseColumn, _new.SequenceDenseColumn)
    columns = [feature_columns] if isinstance(feature_columns, kinds) else list(feature_columns)
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(
                f"sequence_input_layer has {column!r}, expected dense columns of sequences; wrap a "
                "sequence_categorical_column in an embedding_column or an indicator_column"
            )
    names = [column.name for column in columns]
    if len(set(names)) < len(names) or not names:
        raise ValueError(
            f"sequence_input_layer has columns named {names}, expected at least one, and each "
            "name once"
        )
    options = {"weight_collections": weight_collections, "trainable": trainable}
    with tf1.variable_scope(None, "sequence_input_layer", list(features.values())):
        of_old, of_new = _old._LazyBuilder(features), _new.FeatureTransformationCache(features)
        dense, lengths = [], []
        for column in sorted(columns, key=lambda column: column.name):
            with tf1.variable_scope(None, getattr(column, "_var_scope_name", column.name)):
                if isinstance(column, _old._SequenceDenseColumn):
                    values, length = column._get_sequence_dense_tensor(of_old, **options)
                    width = column._variable_shape.num_elements()
                else:  # Numeric columns have no variables.
                    values, length = column.get_sequence_dense_tensor(of_new, None)
                    width = column.variable_shape.num_elements()
                shape = tf1.shape(values)
                dense.append(tf1.reshape(values, [shape[0], shape[1], width]))
                lengths.append(length)
        equal = [tf1.assert_equal(lengths[0], other) for other in lengths[1:]]
        with tf1.control_dependencies(equal):
            return SequenceInputLayer(tf1.concat(dense, -1), tf1.identity(lengths[0]))
