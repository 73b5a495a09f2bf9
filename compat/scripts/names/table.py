"""The table of names that scripts of 2016 to 2019 use and `tf.compat.v1` lacks.

The replacement of a name is another name ("tf.multiply"), an attribute of a module
("...arrays:concat"), or a whole module ("tf_slim:"), which also replaces the names below that
have no entries of their own.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from compat.scripts.names import contrib_names


class Served(NamedTuple):
    """An entry of the table."""

    by: str  # The replacement of the name, as above; "" if there is none.
    gone: str  # The release that removed the name; "" if none did.
    note: str = ""  # A remark for the user; the reason, if there is no replacement.


_SHIMS, _CLUSTERS = "compat.scripts.shims.", "compat.scripts.clusters."
_CONTRIB = "compat.contrib."
_V1 = "compat.v1."

# Renamed in 1.0, from TensorFlow's own list, and from 1.0 to 1.15, for which it has no list.
_RENAMED = {
    "batch_band_part": "matrix_band_part",
    "batch_set_diag": "matrix_set_diag",
    "complex_abs": "abs",
    "concat_v2": "concat",
    "image.per_image_whitening": "image.per_image_standardization",
    "inv": "reciprocal",
    "list_diff": "setdiff1d",
    "listdiff": "setdiff1d",
    "merge_all_summaries": "summary.merge_all",
    "merge_summary": "summary.merge",
    "mul": "multiply",
    "neg": "negative",
    "nn.bidirectional_rnn": "nn.static_bidirectional_rnn",
    "nn.deconv2d": "nn.conv2d_transpose",
    "nn.rnn": "nn.static_rnn",
    "nn.state_saving_rnn": "nn.static_state_saving_rnn",
    "pack": "stack",
    "split_v": "split",
    "sub": "subtract",
    "train.SummaryWriter": "summary.FileWriter",
    "unpack": "unstack",
}

# Renamed in 1.0, when the prefix "batch_" became unnecessary.
_BATCHED = (
    "cholesky cholesky_solve fft fft2d fft3d ifft ifft2d ifft3d matrix_band_part "
    "matrix_determinant matrix_diag matrix_diag_part matrix_inverse matrix_set_diag matrix_solve "
    "matrix_solve_ls matrix_transpose matrix_triangular_solve self_adjoint_eig "
    "self_adjoint_eigvals svd"
)

# Modules of ours, the release that removed the names they replace, and the names.
_OWN_NAMES = (
    # Functions whose arguments had another order or other names.
    (
        _SHIMS + "arguments",
        "1.0",
        "batch_matmul concat image.resize_images nn.nce_loss nn.sampled_softmax_loss "
        "nn.sigmoid_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits "
        "nn.softmax_cross_entropy_with_logits_v2 nn.sparse_softmax_cross_entropy_with_logits "
        "nn.weighted_cross_entropy_with_logits op_scope reverse select sparse_split split svd "
        "variable_op_scope",
    ),
    # Classes whose constructors had other arguments.
    (_SHIMS + "classes", "1.0", "SparseTensor SparseTensorValue"),
    (
        _SHIMS + "classes",
        "",
        "keras.Model keras.Sequential keras.models.Model keras.models.Sequential zeros_initializer",
    ),
    # Summaries whose tags are not prefixed by name scopes.
    (_SHIMS + "summaries", "1.0", "audio_summary histogram_summary image_summary scalar_summary"),
    # Names whose arguments are addresses.
    (
        _CLUSTERS + "distributed",
        "",
        "InteractiveSession Session device train.MonitoredTrainingSession",
    ),
)

_OPTIMIZER = Served(_SHIMS + "classes:SyncReplicasOptimizer", "1.0")
_FLAGS = Served(_SHIMS + "flags:", "", "parsed as before 1.5")
_CELLS, _SEQ2SEQ = _CONTRIB + "rnn.cells:", _CONTRIB + "seq2seq.legacy:"
_TPU = _CONTRIB + "tpu:"
_VERSION = Served(_CONTRIB + "era:version()", "", "the release of the script's time")

_OTHERS = {
    **dict.fromkeys(("train.SyncReplicasOptimizer", "train.SyncReplicasOptimizerV2"), _OPTIMIZER),
    "train.match_filenames_once": Served(_SHIMS + "graphs:match_filenames_once", ""),
    "distribute.MirroredStrategy": Served(_CONTRIB + "distribute:mirrored", ""),
    "train.ClusterSpec": Served(_CLUSTERS + "distributed:ClusterSpec", ""),
    "train.Server": Served(_CLUSTERS + "distributed:Server", ""),
    "train.Supervisor": Served(_CLUSTERS + "distributed:Supervisor", ""),
    **dict.fromkeys(("app.flags", "flags", "python.platform.app", "python.platform.flags"), _FLAGS),
    "app.run": _FLAGS._replace(by=_FLAGS.by + "run"),
    "examples.tutorials.mnist.input_data": Served(_CONTRIB + "tutorials.input_data:", "2.0"),
    "examples.tutorials.mnist.mnist": Served(_CONTRIB + "tutorials.mnist:", "2.0"),
    "models.image.mnist.input_data": Served(_CONTRIB + "tutorials.input_data:", "1.0"),
    "models.rnn.ptb.reader": Served(_CONTRIB + "tutorials.ptb_reader:", "1.0"),
    "models.rnn.rnn": Served("tf.nn", "1.0"),
    "models.rnn.rnn_cell": Served("tf.nn.rnn_cell", "1.0"),
    "models.rnn.seq2seq": Served(_SEQ2SEQ, "1.0"),
    "GraphKeys.VARIABLES": Served("tf.GraphKeys.GLOBAL_VARIABLES", "1.0"),
    **dict.fromkeys(("GIT_VERSION", "VERSION", "__version__", "version.VERSION"), _VERSION),
    "__git_version__": _VERSION,
    "constant": Served(_SHIMS + "graphs:constant", "", "also converts ranges, maps and zips"),
    # Names outside tf.contrib that need the same packages, and internal ones.
    "estimator": Served(_CLUSTERS + "estimators:names", "2.16"),
    "data.experimental.CheckpointInputPipelineHook": Served(
        _CONTRIB + "data.input_checkpoints:CheckpointInputPipelineHook", "2.16"
    ),
    **dict.fromkeys(("estimator.tpu", "estimator.tpu.experimental"), Served(_TPU, "2.16")),
    "distribute.cluster_resolver.TPUClusterResolver": Served(_TPU + "TPUClusterResolver", ""),
    "distribute.experimental.TPUStrategy": Served(_TPU + "TPUStrategy", ""),
    "tpu.experimental.initialize_tpu_system": Served(_TPU + "initialize_tpu_system", ""),
    "tpu.CrossShardOptimizer": Served(_TPU + "CrossShardOptimizer", ""),
    **{
        f"tpu.experimental.{name}Parameters": Served(f"{_TPU}{name}Parameters", "2.16")
        for name in ("Adagrad", "Adam", "Ftrl", "StochasticGradientDescent")
    },
    "nn.rnn_cell": Served(_CELLS, "2.16"),
    "nn.seq2seq": Served(_SEQ2SEQ, "1.0"),
    "python.estimator": Served("tensorflow_estimator.python.estimator:", "2.0"),
    **{
        f"python.framework.graph_util.{name}": Served(f"tf.graph_util.{name}", "2.0")
        for name in ("convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes")
    },
    **{
        f"python.keras.{name}": Served(f"tf.keras.{name}", "2.6")
        for name in ("datasets", "preprocessing", "utils.to_categorical")
    },
    "python.ops.rnn_cell": Served(_CELLS, "1.2"),
    "python.ops.rnn_cell_impl": Served(_CELLS, "2.0"),
    "python.ops.rnn_cell_impl._linear": Served(_CONTRIB + "rnn.attention:linear_of_kernel", "1.4"),
    "python.pywrap_tensorflow.EventsWriter": Served(_SHIMS + "summaries:EventsWriter", "2.0"),
    "python.pywrap_tensorflow.NewCheckpointReader": Served("tf.train.NewCheckpointReader", "2.0"),
    "python.ops.seq2seq": Served(_SEQ2SEQ, "1.0"),
}


def _table() -> dict[str, Served]:
    table = {old: Served("tf." + new, "1.0") for old, new in _RENAMED.items()}
    table.update(("batch_" + name, Served("tf." + name, "1.0")) for name in _BATCHED.split())
    for module, gone, names in _OWN_NAMES:
        for name in names.split():
            table[name] = Served(f"{module}:{name.replace('.', '_')}", gone)
    table.update(_OTHERS)
    for name, (by, note) in contrib_names.NAMES.items():
        table["contrib." + name] = Served(by, "2.0", note)
    return table


NAMES: Mapping[str, Served] = _table()
_PACKAGES = {
    name.rsplit(".", count)[0] for name in NAMES for count in range(1, name.count(".") + 1)
}

# Names that accept more than in TensorFlow 1.15: calls of 0.x, local data.
_ADAPTERS = (_CELLS, _SHIMS + "summaries:", _CONTRIB + "tutorials.")


def adapts(name: str) -> bool:
    """Returns whether an entry also applies if the installed TensorFlow has the name itself."""
    entry = NAMES.get(name)
    return entry is not None and entry.by.startswith(_ADAPTERS) and not entry.by.endswith("cells:")


def under(name: str) -> bool:
    """Returns whether the table has names below `name`, as "nn.seq2seq" is below "nn"."""
    return name in _PACKAGES


def find(name: str) -> Served | None:
    """Returns the entry of `name`, or of the nearest parent that is a whole module."""
    key = nearest(name)
    if key is None:
        return None
    entry = NAMES[key]
    return entry if key == name or entry.by.endswith(":") or not entry.by else None


def plain(name: str) -> str:
    """Returns a name of `tf.compat.v1` as one of `tf`: scripts see the same names in both."""
    return name[len(_V1) :] if name.startswith(_V1) else name


def importable(by: str, ours: str) -> str:
    """Returns the dotted name by which a program can import a replacement.

    Args:
      by: the replacement as in the table, such as "numpy:prod", which becomes "numpy.prod".
      ours: the name to return if `by` is internal: a module of this package, or a private name.
    """
    is_internal = by.startswith("compat.") or "._" in by
    return ours if is_internal else by.replace(":", ".").strip(".")


def nearest(name: str) -> str | None:
    """Returns the name, or its nearest parent, that is in the table."""
    while name and name not in NAMES:
        name = name.rpartition(".")[0]
    return name or None
