"""Names under `tf.contrib` whose replacement has the same name in another module."""

from __future__ import annotations

OWN = "compat.contrib."
SLIM = "tf_slim."
ESTIMATOR = "tensorflow_estimator._api.v1.estimator"
INSIDE = "tensorflow.python."
_SUMMARIES = "compat.scripts.shims.summaries:"

# Modules under tf.contrib: the module with the replacements, and the names, equal in both.
MEMBERS = (
    ("", "tf.", "autograph data distributions feature_column keras saved_model signal xla"),
    ("compiler", "tf.", "xla"),
    (
        "data data.python.ops.batching",
        OWN + "data.inputs:",
        "assert_element_shape batch_and_drop_remainder enumerate_dataset "
        "padded_batch_and_drop_remainder",
    ),
    ("data", OWN + "data.input_checkpoints:", "CheckpointInputPipelineHook"),
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
    ("eager", "tf.app.", "run"),
    (
        "estimator",
        ESTIMATOR + ".experimental:",
        "InMemoryEvaluatorHook build_raw_supervised_input_receiver_fn call_logit_fn "
        "dnn_logit_fn_builder linear_logit_fn_builder make_early_stopping_hook "
        "make_stop_at_checkpoint_step_hook stop_if_higher_hook stop_if_lower_hook "
        "stop_if_no_decrease_hook stop_if_no_increase_hook",
    ),
    (
        "estimator",
        OWN + "learn.heads:",
        "binary_classification_head clip_gradients_by_norm forward_features "
        "logistic_regression_head multi_class_head poisson_regression_head regression_head",
    ),
    ("estimator", OWN + "learn.multi_heads:", "multi_head multi_label_head"),
    ("estimator", OWN + "distribute:", "TowerOptimizer replicate_model_fn"),
    (
        "data",
        OWN + "data.datasets:",
        "Dataset FixedLengthRecordDataset Iterator TFRecordDataset TextLineDataset "
        "sloppy_interleave",
    ),
    (
        "distribute",
        "tf.distribute.",
        "CrossDeviceOps OneDeviceStrategy get_loss_reduction get_replica_context get_strategy "
        "has_strategy in_cross_replica_context",
    ),
    ("distribute", INSIDE + "distribute.cross_device_ops:", "AllReduceCrossDeviceOps"),
    ("distribute", OWN + "tpu:", "TPUStrategy initialize_tpu_system"),
    ("cluster_resolver", OWN + "tpu:", "TPUClusterResolver"),
    (
        "framework framework.python.ops",
        SLIM + "ops.arg_scope:",
        "add_arg_scope arg_scope arg_scoped_arguments current_arg_scope has_arg_scope",
    ),
    (
        "framework framework.python.ops",
        SLIM + "ops.framework_ops:",
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
        OWN + "data.sequence_features:",
        "sequence_input_layer",
    ),
    ("framework", INSIDE + "util.deprecation:", "deprecated deprecated_args"),
    (
        "layers",
        OWN + "layers:",
        "bow_encoder bucketized_column create_feature_spec_for_parsing crossed_column "
        "embed_sequence embedding_column embedding_lookup_unique "
        "input_from_feature_columns one_hot_column parse_feature_columns_from_examples "
        "real_valued_column sparse_column_with_hash_bucket sparse_column_with_integerized_feature "
        "sparse_column_with_keys sparse_column_with_vocabulary_file weighted_sparse_column "
        "weighted_sum_from_feature_columns",
    ),
    ("layers", SLIM + "layers.optimizers:", "OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES"),
    (
        "learn learn.estimators",
        OWN + "learn.canned:",
        "DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor "
        "LinearClassifier LinearRegressor",
    ),
    (
        "learn learn.estimators",
        OWN + "learn.inputs:",
        "extract_pandas_data extract_pandas_labels extract_pandas_matrix "
        "infer_real_valued_columns_from_input infer_real_valued_columns_from_input_fn",
    ),
    ("learn learn.estimators", OWN + "learn.metrics:", "MetricSpec PredictionKey"),
    (
        "learn learn.estimators",
        OWN + "learn.run:",
        "Environment Experiment RunConfig TaskType run tune",
    ),
    ("learn.io", ESTIMATOR + ".inputs:", "numpy_input_fn pandas_input_fn"),
    ("layers", "tf.nn.", "safe_embedding_lookup_sparse"),
    (
        "optimizer_v2 optimizer_v2.optimizer_v2_symbols",
        "tf.train.",
        "AdadeltaOptimizer AdagradOptimizer AdamOptimizer GradientDescentOptimizer "
        "MomentumOptimizer",
    ),
    (
        "optimizer_v2 optimizer_v2.optimizer_v2_symbols",
        OWN + "opt.adaptive:",
        "RMSPropOptimizer",
    ),
    (
        "lookup",
        OWN + "data.inputs:",
        "MutableHashTable index_table_from_tensor index_to_string "
        "index_to_string_table_from_tensor string_to_index",
    ),
    ("metrics metrics.python.ops.confusion_matrix_ops", "tf.", "confusion_matrix"),
    (
        "rnn rnn.python.ops.core_rnn_cell rnn.python.ops.rnn_cell",
        OWN + "rnn.cells:",
        "BasicLSTMCell BasicRNNCell GRUCell LSTMCell MultiRNNCell RNNCell",
    ),
    ("rnn rnn.python.ops.rnn_cell", OWN + "rnn.layer_norm_cell:", "LayerNormBasicLSTMCell"),
    ("rnn", OWN + "rnn.conv_lstm:", "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell"),
    (
        "rnn rnn.python.ops.fused_rnn_cell rnn.python.ops.lstm_ops",
        OWN + "rnn.fused:",
        "FusedRNNCell FusedRNNCellAdaptor LSTMBlockCell LSTMBlockFusedCell TimeReversedFusedRNN",
    ),
    ("rnn", "tf.nn.", "static_bidirectional_rnn static_rnn static_state_saving_rnn"),
    ("staging", INSIDE + "ops.data_flow_ops:", "StagingArea"),
    (
        "training",
        "compat.runtime.device_setter:",
        "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn",
    ),
    ("training", OWN + "training.hparams:", "HParams parse_values"),
    ("training", OWN + "training.bucketing:", "bucket bucket_by_sequence_length"),
    (
        "training",
        SLIM + "training.evaluation:",
        "StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator evaluate_once "
        "evaluate_repeatedly get_or_create_eval_step wait_for_new_checkpoint",
    ),
    ("util", "tf.", "make_ndarray make_tensor_proto"),
)
