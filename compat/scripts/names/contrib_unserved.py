"""The names under `tf.contrib` that nothing serves, with the reasons."""

from __future__ import annotations

from typing import Mapping

# By the reason.
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
