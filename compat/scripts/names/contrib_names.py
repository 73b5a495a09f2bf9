"""The entries of the table for `tf.contrib`, and for names that moved out of it."""

from __future__ import annotations

from typing import Mapping

from compat.scripts.names.contrib_members import ESTIMATOR, INSIDE, MEMBERS, OWN, SLIM
from compat.scripts.names.contrib_unserved import UNSERVED

_LOSSES = ("sigmoid", "softmax", "sparse_softmax")
_SETS = ("difference", "intersection", "size", "union")
# Replacements of names under tf.contrib, and the names.
_SERVED = {
    **{
        f"compat.scripts.shims.arguments:nn_{name}_cross_entropy_with_logits": (
            f"nn.deprecated_flipped_{name}_cross_entropy_with_logits"
        )
        for name in _LOSSES
    },
    "compat.runtime.device_setter:": "training.python.training.device_setter",
    OWN + "rnn.attention:linear_of_kernel": (
        "rnn.python.ops.core_rnn_cell._linear rnn.python.ops.rnn_cell._linear"
    ),
    OWN + "rnn.cells:": (
        "rnn rnn.python.ops.core_rnn_cell rnn.python.ops.core_rnn_cell_impl rnn.python.ops.rnn_cell"
    ),
    OWN + "training.bucketing:": "training.python.training.bucket_ops",
    OWN + "crf:": "crf crf.python.ops.crf",
    OWN + "distribute:": "distribute",
    OWN + "distort_image_ops:": "image.python.ops.distort_image_ops",
    OWN + "image:": "image image.python.ops.image_ops",
    OWN + "training.hparams:": "training.python.training.hparam",
    OWN + "layers:": (
        "layers.feature_column layers.python.layers.feature_column "
        "layers.python.layers.feature_column_ops"
    ),
    OWN + "learn.datasets:": "learn.datasets learn.datasets.base",
    OWN + "learn.estimators:": (
        "learn learn.estimators learn.estimators.estimator learn.estimators.model_fn"
    ),
    OWN + "learn.metrics:": "learn.estimators.prediction_key learn.metric_spec",
    OWN + "learn.monitors:": "learn.monitors",
    OWN + "learn.preprocessing:": "learn.preprocessing learn.preprocessing.text",
    OWN + "learn.run:": ("learn.estimators.run_config learn.experiment learn.learn_runner"),
    OWN + "learn.exports:": (
        "learn.export_strategy learn.utils learn.utils.input_fn_utils "
        "learn.utils.saved_model_export_utils"
    ),
    OWN + "seq2seq.legacy:": "legacy_seq2seq legacy_seq2seq.python.ops.seq2seq",
    OWN + "opt:": "opt",
    OWN + "profiles:": "tfprof tfprof.model_analyzer",
    OWN + "saved_models:": "predictor",
    OWN + "seq2seq:": (
        "seq2seq seq2seq.python.ops.attention_wrapper seq2seq.python.ops.basic_decoder "
        "seq2seq.python.ops.beam_search_decoder seq2seq.python.ops.beam_search_ops "
        "seq2seq.python.ops.decoder seq2seq.python.ops.helper"
    ),
    OWN + "seq2seq.attention:_BaseAttentionMechanism": (
        "seq2seq.python.ops.attention_wrapper._BaseAttentionMechanism"
    ),
    OWN + "seq2seq.wrapper:_compute_attention": (
        "seq2seq.python.ops.attention_wrapper._compute_attention"
    ),
    "compat.contrib.tutorials.input_data:": "learn.datasets.mnist learn.datasets.mnist.input_data",
    OWN + "tpu:": "tpu tpu.python.tpu",
    "tensorboard.plugins.projector:": "tensorboard.plugins.projector",
    ESTIMATOR + ":": "estimator",
    "tensorflow_estimator.python.estimator.early_stopping:read_eval_metrics": (
        "estimator.read_eval_metrics"
    ),
    "tensorflow.compat.v1:distribute.cluster_resolver": "cluster_resolver",
    INSIDE + "compiler.xla.jit:": "compiler.jit",
    INSIDE + "framework.smart_cond:smart_cond": "framework.smart_cond",
    INSIDE + "framework.smart_cond:smart_constant_value": "framework.smart_constant_value",
    INSIDE + "distribute.v1.all_reduce:": "all_reduce.python.all_reduce",
    INSIDE + "distribute.cross_device_ops:AllReduceCrossDeviceOps": (
        "distribute.AllReduceCrossTowerOps"
    ),
    INSIDE + "ops.lookup_ops:": "lookup",
    INSIDE + "ops.nn_ops:nth_element": "nn.nth_element",
    INSIDE + "ops.rnn:_best_effort_input_batch_size": "rnn.best_effort_input_batch_size",
    INSIDE + "ops.rnn:_transpose_batch_time": "rnn.transpose_batch_time",
    INSIDE + "ops.summary_ops_v2:": "summary",
    INSIDE + "training.checkpoint_utils:": "framework.python.framework.checkpoint_utils",
    INSIDE + "util.nest:": "framework.nest",
    "tf.data.experimental": (
        "data.python.ops.batching data.python.ops.grouping data.python.ops.interleave_ops "
        "data.python.ops.prefetching_ops data.python.ops.shuffle_ops"
    ),
    "tf.distribute.ReductionToOneDevice": "distribute.ReductionToOneDeviceCrossDeviceOps",
    "tf.distribute.Strategy": "distribute.DistributionStrategy",
    "tf.distribute.get_strategy": "distribute.get_distribution_strategy",
    "tf.distribute.has_strategy": "distribute.has_distribution_strategy",
    "tf.executing_eagerly": "eager.in_eager_mode",
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
    SLIM + "layers:": "layers layers.python.layers",
    SLIM + "layers.utils:": "layers.utils layers.python.layers.utils",
    SLIM + "losses:": "losses",
    SLIM + "losses.loss_ops:": "losses.python.losses.loss_ops",
    SLIM + "metrics:": "metrics",
    SLIM + "metrics.metric_ops:": "metrics.python.ops.metric_ops",
    SLIM + "nets:": "slim.nets slim.python.slim.nets",
    SLIM + "ops.arg_scope:": "framework.python.ops.arg_scope",
    SLIM + "ops.variables:": "framework framework.python.ops framework.python.ops.variables",
    SLIM + "training.training:": "training",
    SLIM + "training.evaluation:": "training.python.training.evaluation",
}

# The same, each with a note.
_NOTED = {
    "eager": ("tensorflow.compat.v2:", "its names are in `tf` since 1.7"),
    **{
        f"learn.{name}": (f"{OWN}learn.exports:{name}", "it writes a SavedModel")
        for name in ("ExportStrategy", "InputFnOps", "make_export_strategy")
    },
    "nccl": (INSIDE + "ops.nccl_ops:", "it needs GPUs where it is used"),
    "session_bundle.exporter": (OWN + "saved_models:", "it writes a SavedModel"),
}

# Files under tf.contrib.layers.python.layers, and in tf_slim.
_LAYERS = ("initializers", "layers", "normalization", "optimizers", "regularizers", "summaries")


def _names() -> dict[str, tuple[str, str]]:
    names = {name: ("", why) for why, text in UNSERVED.items() for name in text.split()}
    names.update((name, (by, "")) for by, text in _SERVED.items() for name in text.split())
    names.update(_NOTED)
    for modules, by, text in MEMBERS:
        for module in modules.split(" "):
            names.update((f"{module}.{name}".lstrip("."), (by + name, "")) for name in text.split())
    for name in _LAYERS:
        names[f"layers.python.layers.{name}"] = (f"{SLIM}layers.{name}:", "")
    learn = {name: served for name, served in names.items() if f"{name}.".startswith("learn.")}
    names.update((f"learn.python.{name}", served) for name, served in learn.items())
    return names


# By the name under tf.contrib: its replacement ("" for none), and a note.
NAMES: Mapping[str, tuple[str, str]] = _names()
