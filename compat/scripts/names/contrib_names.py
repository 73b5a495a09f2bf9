"""The entries of the table for `tf.contrib`, and for names that moved out of it."""

from __future__ import annotations

from typing import Mapping

from compat.scripts.names.contrib_unserved import UNSERVED

_OWN = "compat.scripts.contrib."
_SUMMARIES = "compat.scripts.calls.summaries:"
_SLIM = "tf_slim."
_ESTIMATOR = "tensorflow_estimator._api.v1.estimator"
_INSIDE = "tensorflow.python."

_SETS = ("difference", "intersection", "size", "union")
# What serves names under tf.contrib, and the names.
_SERVED = {
    "compat.runtime.placement:": "training.python.training.device_setter",
    _OWN + "rnn.attention:linear_of_kernel": (
        "rnn.python.ops.core_rnn_cell._linear rnn.python.ops.rnn_cell._linear"
    ),
    _OWN + "rnn.cells:": (
        "rnn rnn.python.ops.core_rnn_cell rnn.python.ops.core_rnn_cell_impl rnn.python.ops.rnn_cell"
    ),
    _OWN + "crf:": "crf crf.python.ops.crf",
    _OWN + "distort_image_ops:": "image.python.ops.distort_image_ops",
    _OWN + "image:": "image image.python.ops.image_ops",
    _OWN + "hparams:": "training.python.training.hparam",
    _OWN + "layers:": (
        "layers.feature_column layers.python.layers.feature_column "
        "layers.python.layers.feature_column_ops"
    ),
    _OWN + "learn.datasets:": "learn.datasets learn.datasets.base",
    _OWN + "learn.estimators:": (
        "learn learn.estimators learn.estimators.estimator learn.estimators.model_fn"
    ),
    _OWN + "learn.metrics:": "learn.estimators.prediction_key learn.metric_spec",
    _OWN + "learn.monitors:": "learn.monitors",
    _OWN + "learn.preprocessing:": "learn.preprocessing learn.preprocessing.text",
    _OWN + "learn.run:": ("learn.estimators.run_config learn.experiment learn.learn_runner"),
    _OWN + "learn.exports:": (
        "learn.export_strategy learn.utils learn.utils.input_fn_utils "
        "learn.utils.saved_model_export_utils"
    ),
    _OWN + "seq2seq.legacy:": "legacy_seq2seq legacy_seq2seq.python.ops.seq2seq",
    _OWN + "opt:": "opt",
    _OWN + "profiles:": "tfprof tfprof.model_analyzer",
    _OWN + "saved_models:": "predictor",
    _OWN + "seq2seq:": (
        "seq2seq seq2seq.python.ops.attention_wrapper seq2seq.python.ops.basic_decoder "
        "seq2seq.python.ops.beam_search_decoder seq2seq.python.ops.beam_search_ops "
        "seq2seq.python.ops.decoder seq2seq.python.ops.helper"
    ),
    _OWN + "seq2seq.attention:_BaseAttentionMechanism": (
        "seq2seq.python.ops.attention_wrapper._BaseAttentionMechanism"
    ),
    _OWN + "seq2seq.wrapper:_compute_attention": (
        "seq2seq.python.ops.attention_wrapper._compute_attention"
    ),
    "compat.scripts.tutorials.input_data:": "learn.datasets.mnist learn.datasets.mnist.input_data",
    _OWN + "tpu:": "tpu tpu.python.tpu",
    "tensorboard.plugins.projector:": "tensorboard.plugins.projector",
    _ESTIMATOR + ":": "estimator",
    "tensorflow_estimator.python.estimator.early_stopping:read_eval_metrics": (
        "estimator.read_eval_metrics"
    ),
    "tensorflow.compat.v1:distribute.cluster_resolver": "cluster_resolver",
    "tensorflow.compat.v1:distribute.experimental.MultiWorkerMirroredStrategy": (
        "distribute.CollectiveAllReduceStrategy"
    ),
    _INSIDE + "compiler.xla.jit:": "compiler.jit",
    _INSIDE + "framework.smart_cond:smart_cond": "framework.smart_cond",
    _INSIDE + "framework.smart_cond:smart_constant_value": "framework.smart_constant_value",
    _INSIDE + "distribute.v1.all_reduce:": "all_reduce.python.all_reduce",
    _INSIDE + "ops.lookup_ops:": "lookup",
    _INSIDE + "ops.nn_ops:nth_element": "nn.nth_element",
    _INSIDE + "ops.rnn:_best_effort_input_batch_size": "rnn.best_effort_input_batch_size",
    _INSIDE + "ops.rnn:_transpose_batch_time": "rnn.transpose_batch_time",
    _INSIDE + "ops.summary_ops_v2:": "summary",
    _INSIDE + "training.checkpoint_utils:": "framework.python.framework.checkpoint_utils",
    _INSIDE + "util.nest:": "framework.nest",
    "tf.data.experimental": (
        "data.python.ops.batching data.python.ops.grouping data.python.ops.interleave_ops "
        "data.python.ops.prefetching_ops data.python.ops.shuffle_ops"
    ),
    "tf.function": "eager.defun",
    "tf.get_static_value": "util.constant_value",
    "tf.lookup.StaticHashTable": "lookup.HashTable",
    "tf.nn.conv1d_transpose": "nn.conv1d_transpose",
    "tf.py_function": "eager.py_func",
    **{f"tf.sets.{name}": f"metrics.set_{name}" for name in _SETS},
    "tf.summary.all_v2_summary_ops": "summary.all_summary_ops",
    "tf.train.Checkpoint": "eager.Checkpoint",
    "tf.summary.merge": "deprecated.merge_summary",
    "tf.summary.merge_all": "deprecated.merge_all_summaries",
    "tf_slim:": "slim slim.python.slim",
    _SLIM + "layers:": "layers layers.python.layers",
    _SLIM + "layers.utils:": "layers.utils layers.python.layers.utils",
    _SLIM + "losses:": "losses",
    _SLIM + "losses.loss_ops:": "losses.python.losses.loss_ops",
    _SLIM + "metrics:": "metrics",
    _SLIM + "metrics.metric_ops:": "metrics.python.ops.metric_ops",
    _SLIM + "nets:": "slim.nets slim.python.slim.nets",
    _SLIM + "ops.arg_scope:": "framework.python.ops.arg_scope",
    _SLIM + "ops.variables:": "framework framework.python.ops framework.python.ops.variables",
    _SLIM + "training.training:": "training",
    _SLIM + "training.evaluation:": "training.python.training.evaluation",
}

# As above, each with a note.
_NOTED = {
    "eager": ("tensorflow.compat.v2:", "its names are in `tf` since 1.7"),
    **{
        f"learn.{name}": (f"{_OWN}learn.exports:{name}", "it writes a SavedModel")
        for name in ("ExportStrategy", "InputFnOps", "make_export_strategy")
    },
    "nccl": (_INSIDE + "ops.nccl_ops:", "it needs GPUs where it is used"),
    "session_bundle.exporter": (_OWN + "saved_models:", "it writes a SavedModel"),
}

# Modules under tf.contrib, what serves names in them, and the names, which are the same there.
_SAME_NAMES = (
    ("", "tf.", "autograph data distributions feature_column keras saved_model signal xla"),
    ("compiler", "tf.", "xla"),
    (
        "data data.python.ops.batching",
        _OWN + "data.inputs:",
        "assert_element_shape batch_and_drop_remainder enumerate_dataset "
        "padded_batch_and_drop_remainder",
    ),
    (
        "data",
        "tf.data.experimental.",
        "AUTOTUNE Counter CsvDataset Optional RandomDataset SqlDataset bucket_by_sequence_length "
        "choose_from_datasets copy_to_device dense_to_sparse_batch get_next_as_optional "
        "get_single_element group_by_reducer group_by_window ignore_errors "
        "make_batched_features_dataset make_csv_dataset make_saveable_from_iterator map_and_batch "
        "parallel_interleave prefetch_to_device rejection_resample sample_from_datasets scan "
        "shuffle_and_repeat unbatch unique",
    ),
    ("deprecated", _SUMMARIES, "audio_summary histogram_summary image_summary scalar_summary"),
    ("eager", "tf.", "enable_eager_execution"),
    (
        "eager",
        _OWN + "eager:",
        "Iterator Saver get_optimizer_variables gradients_function implicit_gradients "
        "implicit_value_and_gradients in_eager_mode list_devices num_gpus run "
        "value_and_gradients_function",
    ),
    (
        "estimator",
        _ESTIMATOR + ".experimental:",
        "InMemoryEvaluatorHook build_raw_supervised_input_receiver_fn call_logit_fn "
        "dnn_logit_fn_builder linear_logit_fn_builder make_early_stopping_hook "
        "make_stop_at_checkpoint_step_hook stop_if_higher_hook stop_if_lower_hook "
        "stop_if_no_decrease_hook stop_if_no_increase_hook",
    ),
    (
        "estimator",
        _OWN + "learn.heads:",
        "binary_classification_head clip_gradients_by_norm forward_features multi_class_head "
        "regression_head",
    ),
    (
        "data",
        _OWN + "data.datasets:",
        "Dataset FixedLengthRecordDataset Iterator TFRecordDataset TextLineDataset "
        "sloppy_interleave",
    ),
    ("distribute", "tf.distribute.", "MirroredStrategy OneDeviceStrategy"),
    ("distribute", "tf.distribute.experimental.", "ParameterServerStrategy"),
    (
        "framework framework.python.ops",
        _SLIM + "ops.arg_scope:",
        "add_arg_scope arg_scope arg_scoped_arguments current_arg_scope has_arg_scope",
    ),
    (
        "framework framework.python.ops",
        _SLIM + "ops.framework_ops:",
        "get_graph_from_inputs get_name_scope",
    ),
    (
        "framework",
        "tf.train.",
        "assert_global_step create_global_step get_global_step get_or_create_global_step "
        "init_from_checkpoint list_variables load_checkpoint load_variable",
    ),
    (
        "framework",
        "tf.",
        "CriticalSection TensorSpec argsort assert_scalar convert_to_tensor_or_sparse_tensor "
        "is_tensor py_func sort",
    ),
    (
        "feature_column feature_column.python.feature_column.sequence_feature_column",
        _OWN + "data.sequence_features:",
        "sequence_input_layer",
    ),
    ("framework", _INSIDE + "util.deprecation:", "deprecated deprecated_args"),
    (
        "layers",
        _OWN + "layers:",
        "bow_encoder bucketized_column create_feature_spec_for_parsing crossed_column "
        "embed_sequence embedding_column embedding_lookup_unique "
        "input_from_feature_columns one_hot_column parse_feature_columns_from_examples "
        "real_valued_column sparse_column_with_hash_bucket sparse_column_with_integerized_feature "
        "sparse_column_with_keys sparse_column_with_vocabulary_file weighted_sparse_column "
        "weighted_sum_from_feature_columns",
    ),
    ("layers", _SLIM + "layers.optimizers:", "OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES"),
    (
        "learn learn.estimators",
        _OWN + "learn.canned:",
        "DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor "
        "LinearClassifier LinearRegressor",
    ),
    (
        "learn learn.estimators",
        _OWN + "learn.inputs:",
        "extract_pandas_data extract_pandas_labels extract_pandas_matrix "
        "infer_real_valued_columns_from_input infer_real_valued_columns_from_input_fn",
    ),
    ("learn learn.estimators", _OWN + "learn.metrics:", "MetricSpec PredictionKey"),
    (
        "learn learn.estimators",
        _OWN + "learn.run:",
        "Environment Experiment RunConfig TaskType run tune",
    ),
    ("learn.io", _ESTIMATOR + ".inputs:", "numpy_input_fn pandas_input_fn"),
    ("layers", "tf.nn.", "safe_embedding_lookup_sparse"),
    (
        "lookup",
        _OWN + "data.inputs:",
        "MutableHashTable index_table_from_tensor index_to_string "
        "index_to_string_table_from_tensor string_to_index",
    ),
    ("metrics metrics.python.ops.confusion_matrix_ops", "tf.", "confusion_matrix"),
    (
        "rnn rnn.python.ops.core_rnn_cell rnn.python.ops.rnn_cell",
        _OWN + "rnn.cells:",
        "BasicLSTMCell BasicRNNCell GRUCell LSTMCell MultiRNNCell RNNCell",
    ),
    ("rnn rnn.python.ops.rnn_cell", _OWN + "rnn.layer_norm_cell:", "LayerNormBasicLSTMCell"),
    ("rnn", _OWN + "rnn.conv_lstm:", "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell"),
    (
        "rnn rnn.python.ops.fused_rnn_cell rnn.python.ops.lstm_ops",
        _OWN + "rnn.fused:",
        "FusedRNNCell FusedRNNCellAdaptor LSTMBlockCell LSTMBlockFusedCell TimeReversedFusedRNN",
    ),
    ("rnn", "tf.nn.", "static_bidirectional_rnn static_rnn static_state_saving_rnn"),
    ("staging", _INSIDE + "ops.data_flow_ops:", "StagingArea"),
    (
        "training",
        "compat.runtime.placement:",
        "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn",
    ),
    (
        "nn",
        _OWN + "losses:",
        "deprecated_flipped_sigmoid_cross_entropy_with_logits "
        "deprecated_flipped_softmax_cross_entropy_with_logits "
        "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    ),
    ("training", _OWN + "hparams:", "HParams"),
    (
        "training",
        _SLIM + "training.evaluation:",
        "StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator evaluate_once "
        "evaluate_repeatedly get_or_create_eval_step wait_for_new_checkpoint",
    ),
    ("util", "tf.", "make_ndarray make_tensor_proto"),
)

# Files under tf.contrib.layers.python.layers, and in tf_slim.
_LAYERS = ("initializers", "layers", "normalization", "optimizers", "regularizers", "summaries")


def _names() -> dict[str, tuple[str, str]]:
    names = {name: ("", why) for why, text in UNSERVED.items() for name in text.split()}
    names.update((name, (by, "")) for by, text in _SERVED.items() for name in text.split())
    names.update(_NOTED)
    for modules, by, text in _SAME_NAMES:
        for module in modules.split(" "):
            names.update((f"{module}.{name}".lstrip("."), (by + name, "")) for name in text.split())
    for name in _LAYERS:
        names[f"layers.python.layers.{name}"] = (f"{_SLIM}layers.{name}:", "")
    learn = {name: served for name, served in names.items() if f"{name}.".startswith("learn.")}
    names.update((f"learn.python.{name}", served) for name, served in learn.items())
    return names


# Name under tf.contrib: what serves it ("" for nothing), and a note.
NAMES: Mapping[str, tuple[str, str]] = _names()
