"""The names under `tf.contrib` that have no replacement, with the reasons."""

from __future__ import annotations

from typing import Mapping

# The names by the reason.
UNSERVED: Mapping[str, str] = {
    "its package, TensorFlow Addons, is no longer maintained": (
        "image.dense_image_warp image.interpolate_spline image.sparse_image_warp"
    ),
    "it needs a GPU and a TensorFlow of its time": "cudnn_rnn tensorrt",
    "TensorFlow removed its kernels": (
        "bigtable boosted_trees cloud decision_trees factorization ffmpeg "
        "image.bipartite_match image.connected_components "
        "image.single_image_random_dot_stereograms "
        "learn.KMeansClustering libsvm periodic_resample tensor_forest"
    ),
    "it is for networks or devices that TensorFlow 2 does not support in this way": (
        "mpi mpi_collectives verbs"
    ),
    "its package, TensorFlow Probability, has the successor": "bayesflow integrate",
    "TensorFlow Probability has the successor": "timeseries",
    "its package, TF-GAN, requires TensorFlow 2 without sessions": "gan",
    "estimators have heads in its place since 1.0": (
        "layers.multi_class_target layers.regression_target"
    ),
    "estimators train with monitored sessions since 1.0": "learn.graph_actions",
    "0.11 removed it; use DNNClassifier": "learn.TensorFlowDNNClassifier",
    "no estimator supports dual coordinate ascent any more": "learn.SVM linear_optimizer",
    "its file queues are gone; use tf.train.batch or tf.data": (
        "learn.read_batch_examples learn.read_batch_features learn.read_batch_record_features "
        "learn.io.read_batch_examples learn.io.read_batch_features "
        "learn.io.read_batch_record_features"
    ),
    "use tf.train.SyncReplicasOptimizer, which averages the gradients of all workers": (
        "opt.AGNCustomGetter opt.AGNOptimizer opt.ElasticAverageCustomGetter "
        "opt.ElasticAverageOptimizer opt.ModelAverageCustomGetter opt.ModelAverageOptimizer"
    ),
    "use tf.train.MomentumOptimizer": "opt.AddSignOptimizer opt.PowerSignOptimizer",
    "use an optimizer of its own for each task, by minimize(..., var_list=...)": (
        "opt.MultitaskOptimizerWrapper"
    ),
    "use tf.GradientTape": (
        "eager.gradients_function eager.implicit_gradients eager.implicit_value_and_gradients "
        "eager.value_and_gradients_function"
    ),
    "use tf.train.Checkpoint": "eager.Saver",
    "use iter(dataset)": "eager.Iterator",
    "use optimizer.variables()": "eager.get_optimizer_variables",
    "use tf.config.list_physical_devices": "eager.list_devices eager.num_gpus",
    "use tf.estimator.Estimator, and tf.nn.dynamic_rnn in its model_fn": (
        "estimator.RNNClassifier estimator.RNNEstimator"
    ),
    "use tf.data.experimental.rejection_resample": (
        "training.rejection_sample training.stratified_sample"
    ),
    "use tf.data.Dataset.flat_map with repeat": (
        "training.resample_at_rate training.weighted_resample"
    ),
    "its hashed embeddings have no successor": "layers.scattered_embedding_column",
    "tf.data is the successor": "training.batch_sequences_with_states",
    "thread counts are an option of tf.data since 1.12": "data.python.ops.threadpool",
    "it copied parts of graphs in ways that TensorFlow 2 does not allow": "copy_graph",
    "it edited graphs in ways that TensorFlow 2 does not allow": "graph_editor",
    "it has no successor that reads its graphs": "model_pruning",
    "it rewrote graphs for mobile devices": "quantize",
    "it was internal to Google": "cmd_args",
    "meta graphs list them since 0.12": "util.ops_used_by_graph_def",
    "no package provides it for graphs any more": (
        "nn.alpha_dropout opt.LazyAdamGSOptimizer opt.RegAdagradOptimizer opt.ShampooOptimizer"
    ),
}
