"""`tf.contrib.feature_column.sequence_input_layer`, by the layer of Keras that succeeds it."""

from __future__ import annotations

import collections
from typing import Any, Mapping, Sequence

from compat._tensorflow import tf1

SequenceInputLayer = collections.namedtuple(
    "SequenceInputLayer", "sequence_input_layer sequence_length"
)


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Sequence[Any],
    weight_collections: Any = None,
    trainable: bool = True,
) -> SequenceInputLayer:
    """Returns the input of a recurrent network, float32 `[batch, time, width]`, and its lengths.

    Ignores `weight_collections`. Variables are named "sequence_features/...", not
    "sequence_input_layer/...".
    """
    del weight_collections
    layer = tf1.keras.experimental.SequenceFeatures(feature_columns, trainable=trainable)
    return SequenceInputLayer(*layer(features))
