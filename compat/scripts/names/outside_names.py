"""The entries of the table for names outside of tf.contrib, and for internal ones."""

from __future__ import annotations

_OWN = "compat.scripts.contrib."
_ESTIMATOR = "tensorflow_estimator._api.v1.estimator"

# Names outside tf.contrib that need the same packages: what serves them, the release without them.
OUTSIDE: dict[str, tuple[str, str]] = {
    "estimator": (_ESTIMATOR + ":", "2.16"),
    "estimator.tpu": (_OWN + "tpu:", "2.16"),
    "nn.rnn_cell": (_OWN + "rnn.cells:", "2.16"),
    "nn.seq2seq": (_OWN + "seq2seq.legacy:", "1.0"),
    "python.estimator": ("tensorflow_estimator.python.estimator:", "2.0"),
    **{
        f"python.framework.graph_util.{name}": (f"tf.graph_util.{name}", "2.0")
        for name in ("convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes")
    },
    **{
        f"python.keras.{name}": (f"tf.keras.{name}", "2.6")
        for name in ("datasets", "preprocessing")
    },
    "python.keras.utils.to_categorical": ("tf.keras.utils.to_categorical", "2.6"),
    "python.ops.rnn_cell": (_OWN + "rnn.cells:", "1.2"),
    "python.ops.rnn_cell_impl": (_OWN + "rnn.cells:", "2.0"),
    "python.ops.rnn_cell_impl._linear": (_OWN + "rnn.attention:linear_of_kernel", "1.4"),
    "python.pywrap_tensorflow.NewCheckpointReader": ("tf.train.NewCheckpointReader", "2.0"),
    "python.ops.seq2seq": (_OWN + "seq2seq.legacy:", "1.0"),
}
