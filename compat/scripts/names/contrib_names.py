"""The entries of the table for `tf.contrib`, and for names that moved out of it."""

from __future__ import annotations

from typing import Iterable

from compat.scripts.names import learn_names

_OWN = "compat.scripts.contrib."
_SLIM = "tf_slim."
_ESTIMATOR = "tensorflow_estimator._api.v1.estimator:"
_INSIDE = "tensorflow.python."

_ADDONS = "its package, TensorFlow Addons, is no longer maintained"
_GPU = "it needs a GPU and a TensorFlow of its time"
_CELLS = ("BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell", "MultiRNNCell", "RNNCell")
_KERNELS = "TensorFlow removed its kernels"
_OTHER_HARDWARE = "it is for networks or devices that TensorFlow 2 does not support in this way"

# Name under tf.contrib: what serves it ("" for nothing), and a note.
NAMES: dict[str, tuple[str, str]] = {
    "all_reduce.python.all_reduce": (_INSIDE + "distribute.v1.all_reduce:", ""),
    "autograph": ("tf.autograph", ""),
    "bayesflow": ("", "its package, TensorFlow Probability, has the successor"),
    "bigtable": ("", _KERNELS),
    "boosted_trees": ("", _KERNELS),
    "cloud": ("", _KERNELS),
    "cluster_resolver": ("tensorflow.compat.v1:distribute.cluster_resolver", ""),
    "cmd_args": ("", "it was internal to Google"),
    "compiler.jit": (_INSIDE + "compiler.xla.jit:", ""),
    "compiler.xla": ("tf.xla", ""),
    "copy_graph": ("", "it copied parts of graphs in ways that TensorFlow 2 does not allow"),
    "crf": ("", _ADDONS),
    "cudnn_rnn": ("", _GPU),
    "decision_trees": ("", _KERNELS),
    "deprecated.audio_summary": ("compat.scripts.calls.summaries:audio_summary", ""),
    "deprecated.histogram_summary": ("compat.scripts.calls.summaries:histogram_summary", ""),
    "deprecated.image_summary": ("compat.scripts.calls.summaries:image_summary", ""),
    "deprecated.merge_all_summaries": ("tf.summary.merge_all", ""),
    "deprecated.merge_summary": ("tf.summary.merge", ""),
    "deprecated.scalar_summary": ("compat.scripts.calls.summaries:scalar_summary", ""),
    "distribute.CollectiveAllReduceStrategy": (
        "tensorflow.compat.v1:distribute.experimental.MultiWorkerMirroredStrategy",
        "",
    ),
    "distribute.DistributeConfig": ("", "TensorFlow 2.16 removed Estimator"),
    "distribute.MirroredStrategy": ("tf.distribute.MirroredStrategy", ""),
    "distribute.OneDeviceStrategy": ("tf.distribute.OneDeviceStrategy", ""),
    "distribute.ParameterServerStrategy": (
        "tf.distribute.experimental.ParameterServerStrategy",
        "",
    ),
    "distributions": ("tf.distributions", ""),
    "eager": ("tensorflow.compat.v2:", "its names are in `tf` since 1.7"),
    "estimator": (_ESTIMATOR, ""),
    "factorization": ("", _KERNELS),
    "feature_column": ("tf.feature_column", ""),
    "ffmpeg": ("", _KERNELS),
    "gan": ("", "its package, TF-GAN, requires TensorFlow 2 without sessions"),
    "graph_editor": ("", "it edited graphs in ways that TensorFlow 2 does not allow"),
    "image": ("", _KERNELS),
    "image.python.ops.distort_image_ops": (_OWN + "distort_image_ops:", ""),
    "integrate": ("", "its package, TensorFlow Probability, has the successor"),
    "keras": ("tf.keras", ""),
    "libsvm": ("", _KERNELS),
    "linear_optimizer": ("", "no estimator supports dual coordinate ascent any more"),
    "losses": (_SLIM + "losses:", ""),
    "losses.python.losses.loss_ops": (_SLIM + "losses.loss_ops:", ""),
    "metrics": (_SLIM + "metrics:", ""),
    "metrics.confusion_matrix": ("tf.confusion_matrix", ""),
    "metrics.set_difference": ("tf.sets.difference", ""),
    "metrics.set_intersection": ("tf.sets.intersection", ""),
    "metrics.set_size": ("tf.sets.size", ""),
    "metrics.set_union": ("tf.sets.union", ""),
    "metrics.python.ops.metric_ops": (_SLIM + "metrics.metric_ops:", ""),
    "model_pruning": ("", "it has no successor that reads its graphs"),
    "mpi": ("", _OTHER_HARDWARE),
    "mpi_collectives": ("", _OTHER_HARDWARE),
    "nccl": (_INSIDE + "ops.nccl_ops:", "it needs GPUs where it is used"),
    "nn.alpha_dropout": ("", "no package provides it for graphs any more"),
    "opt": ("", "TensorFlow Addons, its successor, is no longer maintained"),
    "periodic_resample": ("", _KERNELS),
    "predictor": (_OWN + "saved_models:", ""),
    "quantize": ("", "it rewrote graphs for mobile devices"),
    "rnn": (_OWN + "cells:", ""),
    "rnn.python.ops.core_rnn_cell": (_OWN + "cells:", ""),
    "rnn.python.ops.rnn_cell": (_OWN + "cells:", ""),
    "saved_model": ("tf.saved_model", ""),
    "seq2seq": ("", _ADDONS),
    "seq2seq.sequence_loss": (_OWN + "sequence_loss:sequence_loss_3d", ""),
    "legacy_seq2seq": (_OWN + "legacy_seq2seq:", ""),
    "session_bundle.exporter": (_OWN + "saved_models:", "it writes a SavedModel"),
    "signal": ("tf.signal", ""),
    "slim": ("tf_slim:", ""),
    "slim.nets": (_SLIM + "nets:", ""),
    "slim.python.slim": ("tf_slim:", ""),
    "slim.python.slim.nets": (_SLIM + "nets:", ""),
    "staging.StagingArea": (_INSIDE + "ops.data_flow_ops:StagingArea", ""),
    "summary": (_INSIDE + "ops.summary_ops_v2:", ""),
    "tensor_forest": ("", _KERNELS),
    "tensorboard.plugins.projector": ("tensorboard.plugins.projector:", ""),
    "tensorrt": ("", _GPU),
    "timeseries": ("", "TensorFlow Probability has the successor"),
    "tpu": ("tf.tpu", ""),
    "util.constant_value": ("tf.get_static_value", ""),
    "util.make_ndarray": ("tf.make_ndarray", ""),
    "util.make_tensor_proto": ("tf.make_tensor_proto", ""),
    "util.ops_used_by_graph_def": ("", "meta graphs list them since 0.12"),
    "verbs": ("", _OTHER_HARDWARE),
    "xla": ("tf.xla", ""),
}

# Names outside tf.contrib that need the same packages: what serves them, the release without them.
OUTSIDE: dict[str, tuple[str, str]] = {
    "estimator": (_ESTIMATOR, "2.16"),
    "nn.rnn_cell": (_OWN + "cells:", "2.16"),
    "nn.seq2seq": (_OWN + "legacy_seq2seq:", "1.0"),
    "python.estimator": (_ESTIMATOR, "2.0"),
    "python.ops.rnn_cell": (_OWN + "cells:", "1.2"),
    "python.ops.rnn_cell_impl": (_OWN + "cells:", "2.0"),
    "python.ops.seq2seq": (_OWN + "legacy_seq2seq:", "1.0"),
}


def _add(place: str, names: Iterable[str], by: str) -> None:
    """Maps names under `place` to the same names under `by`."""
    for name in names:
        NAMES[f"{place}.{name}"] = (by + name, "")


# tf.contrib.framework
NAMES["framework"] = (_SLIM + "ops.variables:", "")
NAMES["framework.nest"] = ("tf.nest", "")
NAMES["framework.python.ops"] = (_SLIM + "ops.variables:", "")
NAMES["framework.python.ops.variables"] = (_SLIM + "ops.variables:", "")
NAMES["framework.python.ops.arg_scope"] = (_SLIM + "ops.arg_scope:", "")
_ARG_SCOPE = ("add_arg_scope", "arg_scope", "arg_scoped_arguments", "has_arg_scope")
for _place in ("framework", "framework.python.ops"):
    _add(_place, _ARG_SCOPE, _SLIM + "ops.arg_scope:")
    _add(_place, ("get_graph_from_inputs", "get_name_scope"), _SLIM + "ops.framework_ops:")
_add(
    "framework",
    (
        "assert_global_step",
        "create_global_step",
        "get_global_step",
        "get_or_create_global_step",
        "init_from_checkpoint",
        "list_variables",
        "load_checkpoint",
        "load_variable",
    ),
    "tf.train.",
)
_add(
    "framework",
    ("CriticalSection", "TensorSpec", "argsort", "assert_scalar", "is_tensor", "py_func", "sort"),
    "tf.",
)
_add("framework", ("deprecated", "deprecated_args"), _INSIDE + "util.deprecation:")
NAMES["framework.convert_to_tensor_or_sparse_tensor"] = (
    "tf.convert_to_tensor_or_sparse_tensor",
    "",
)

# tf.contrib.layers
NAMES["layers"] = (_SLIM + "layers:", "")
_add(
    "layers",
    (
        "bow_encoder",
        "bucketized_column",
        "create_feature_spec_for_parsing",
        "crossed_column",
        "embed_sequence",
        "embedding_column",
        "embedding_lookup_unique",
        "input_from_feature_columns",
        "one_hot_column",
        "parse_feature_columns_from_examples",
        "real_valued_column",
        "sparse_column_with_hash_bucket",
        "sparse_column_with_integerized_feature",
        "sparse_column_with_keys",
        "sparse_column_with_vocabulary_file",
        "weighted_sparse_column",
        "weighted_sum_from_feature_columns",
    ),
    _OWN + "layers:",
)
NAMES["layers.scattered_embedding_column"] = ("", "its hashed embeddings have no successor")
NAMES["layers.multi_class_target"] = ("", "estimators have heads in its place since 1.0")
NAMES["layers.regression_target"] = ("", "estimators have heads in its place since 1.0")
NAMES["layers.safe_embedding_lookup_sparse"] = ("tf.nn.safe_embedding_lookup_sparse", "")
NAMES["layers.OPTIMIZER_CLS_NAMES"] = (_SLIM + "layers.optimizers:OPTIMIZER_CLS_NAMES", "")
NAMES["layers.OPTIMIZER_SUMMARIES"] = (_SLIM + "layers.optimizers:OPTIMIZER_SUMMARIES", "")
NAMES["layers.feature_column"] = (_OWN + "layers:", "")
NAMES["layers.python.layers"] = (_SLIM + "layers:", "")
NAMES["layers.python.layers.feature_column"] = (_OWN + "layers:", "")
NAMES["layers.python.layers.feature_column_ops"] = (_OWN + "layers:", "")
for _name in ("initializers", "layers", "normalization", "optimizers", "regularizers", "summaries"):
    NAMES["layers.python.layers." + _name] = (f"{_SLIM}layers.{_name}:", "")
for _place in ("layers", "layers.python.layers"):
    NAMES[_place + ".utils"] = (_SLIM + "layers.utils:", "")

# tf.contrib.rnn
for _place in ("rnn", "rnn.python.ops.core_rnn_cell", "rnn.python.ops.rnn_cell"):
    _add(_place, _CELLS, _OWN + "cells:")
_add(
    "rnn",
    ("static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"),
    "tf.nn.",
)

# tf.contrib.training
NAMES["training"] = (_SLIM + "training.training:", "")
NAMES["training.python.training.hparam"] = (_OWN + "hparams:", "")
NAMES["training.python.training.device_setter"] = ("compat.placement:", "")
_add("training", ("HParams",), _OWN + "hparams:")
_add(
    "training",
    ("GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"),
    "compat.placement:",
)
_add(
    "training",
    (
        "StopAfterNEvalsHook",
        "SummaryAtEndHook",
        "checkpoints_iterator",
        "evaluate_once",
        "evaluate_repeatedly",
        "get_or_create_eval_step",
        "wait_for_new_checkpoint",
    ),
    _SLIM + "training.evaluation:",
)
for _name in ("batch_sequences_with_states", "bucket", "bucket_by_sequence_length"):
    NAMES["training." + _name] = ("", "tf.data is the successor")

# tf.contrib.data, which became tf.data and tf.data.experimental.
NAMES["data"] = ("tf.data", "")
_DATA = (
    "Counter",
    "CsvDataset",
    "Optional",
    "RandomDataset",
    "SqlDataset",
    "bucket_by_sequence_length",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "get_next_as_optional",
    "get_single_element",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "parallel_interleave",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "unbatch",
    "unique",
)
_add("data", _DATA, "tf.data.experimental.")
NAMES["data.AUTOTUNE"] = ("tf.data.experimental.AUTOTUNE", "")
_DATA_METHODS = (
    "assert_element_shape",
    "batch_and_drop_remainder",
    "enumerate_dataset",
    "padded_batch_and_drop_remainder",
)
_add("data", _DATA_METHODS, _OWN + "data:")
for _name in ("batching", "grouping", "interleave_ops", "prefetching_ops", "shuffle_ops"):
    NAMES["data.python.ops." + _name] = ("tf.data.experimental", "")
_add("data.python.ops.batching", _DATA_METHODS, _OWN + "data:")
NAMES["data.python.ops.threadpool"] = ("", "thread counts are an option of tf.data since 1.12")

# tf.contrib.lookup
NAMES["lookup"] = (_INSIDE + "ops.lookup_ops:", "")
NAMES["lookup.HashTable"] = ("tf.lookup.StaticHashTable", "")
_add(
    "lookup",
    (
        "MutableHashTable",
        "index_table_from_tensor",
        "index_to_string",
        "index_to_string_table_from_tensor",
        "string_to_index",
    ),
    _OWN + "lookup:",
)

NAMES.update(("learn" + name, served) for name, served in learn_names.NAMES.items())
