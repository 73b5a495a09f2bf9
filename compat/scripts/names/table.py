"""The table of names that scripts of 2016 to 2019 use and `tf.compat.v1` lacks.

A name is served by another name of `tf.compat.v1` ("tf.multiply"), by an attribute of a module
("compat.scripts.calls.arguments:concat"), or by a whole module ("tf_slim:"). A module also serves
the names below, except those with entries of their own.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from compat.scripts.names import contrib_names


class Served(NamedTuple):
    """An entry of the table.

    Attributes:
      by: what serves the name, as above; "" if nothing does.
      gone: the release that removed the name.
      note: remark for the user; the reason, if nothing serves the name.
    """

    by: str
    gone: str
    note: str = ""


_OWN = "compat.scripts."

# Renamed in 1.0, by TensorFlow's own list, and from 1.0 to 1.15, which have no list.
_RENAMED = {
    "batch_band_part": "matrix_band_part",
    "batch_cholesky": "cholesky",
    "batch_cholesky_solve": "cholesky_solve",
    "batch_fft": "fft",
    "batch_fft2d": "fft2d",
    "batch_fft3d": "fft3d",
    "batch_ifft": "ifft",
    "batch_ifft2d": "ifft2d",
    "batch_ifft3d": "ifft3d",
    "batch_matrix_band_part": "matrix_band_part",
    "batch_matrix_determinant": "matrix_determinant",
    "batch_matrix_diag": "matrix_diag",
    "batch_matrix_diag_part": "matrix_diag_part",
    "batch_matrix_inverse": "matrix_inverse",
    "batch_matrix_set_diag": "matrix_set_diag",
    "batch_matrix_solve": "matrix_solve",
    "batch_matrix_solve_ls": "matrix_solve_ls",
    "batch_matrix_transpose": "matrix_transpose",
    "batch_matrix_triangular_solve": "matrix_triangular_solve",
    "batch_self_adjoint_eig": "self_adjoint_eig",
    "batch_self_adjoint_eigvals": "self_adjoint_eigvals",
    "batch_set_diag": "matrix_set_diag",
    "batch_svd": "svd",
    "complex_abs": "abs",
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
    "sub": "subtract",
    "train.SummaryWriter": "summary.FileWriter",
    "unpack": "unstack",
}

# Functions whose arguments had another order or other names.
_ARGUMENTS = (
    "batch_matmul",
    "concat",
    "image.resize_images",
    "nn.nce_loss",
    "nn.sampled_softmax_loss",
    "nn.sigmoid_cross_entropy_with_logits",
    "nn.softmax_cross_entropy_with_logits",
    "nn.softmax_cross_entropy_with_logits_v2",
    "nn.sparse_softmax_cross_entropy_with_logits",
    "nn.weighted_cross_entropy_with_logits",
    "op_scope",
    "reverse",
    "select",
    "sparse_split",
    "split",
    "svd",
    "variable_op_scope",
)

# Classes whose constructors had other arguments.
_CLASSES = {
    "SparseTensor": "SparseTensor",
    "SparseTensorValue": "SparseTensorValue",
    "train.SyncReplicasOptimizer": "SyncReplicasOptimizer",
    "train.SyncReplicasOptimizerV2": "SyncReplicasOptimizer",
}

# Names that take addresses; no release removed them, so `gone` is "".
_DISTRIBUTED = {
    "InteractiveSession": "InteractiveSession",
    "Session": "Session",
    "device": "device",
    "train.ClusterSpec": "ClusterSpec",
    "train.MonitoredTrainingSession": "train_MonitoredTrainingSession",
    "train.Server": "Server",
    "train.Supervisor": "Supervisor",
}

# Summaries with unprefixed tags.
_SUMMARIES = ("audio_summary", "histogram_summary", "image_summary", "scalar_summary")

_MODULES = {
    "app.flags": Served(_OWN + "calls.flags:", "", "parsed as before 1.5"),
    "app.run": Served(_OWN + "calls.flags:run", "", "parsed as before 1.5"),
    "flags": Served(_OWN + "calls.flags:", "", "parsed as before 1.5"),
    "examples.tutorials.mnist.input_data": Served(_OWN + "tutorials.input_data:", "2.0"),
    "examples.tutorials.mnist.mnist": Served(_OWN + "tutorials.mnist:", "2.0"),
    "models.image.mnist.input_data": Served(_OWN + "tutorials.input_data:", "1.0"),
    "python.platform.app": Served(_OWN + "calls.flags:", "", "parsed as before 1.5"),
    "python.platform.flags": Served(_OWN + "calls.flags:", "", "parsed as before 1.5"),
    "models.rnn.ptb.reader": Served(_OWN + "tutorials.ptb_reader:", "1.0"),
    "models.rnn.rnn_cell": Served("tf.nn.rnn_cell", "1.0"),
    "models.rnn.seq2seq": Served(_OWN + "contrib.legacy_seq2seq:", "1.0"),
}

_VALUES = {
    "constant": Served(_OWN + "calls.lists:constant", "", "also converts ranges, maps and zips"),
    "GIT_VERSION": Served(_OWN + "names.era:version()", "", "the release of the script's time"),
    "VERSION": Served(_OWN + "names.era:version()", "", "the release of the script's time"),
    "__version__": Served(_OWN + "names.era:version()", "", "the release of the script's time"),
    "version.VERSION": Served(_OWN + "names.era:version()", "", "the release of the script's time"),
    "GraphKeys.VARIABLES": Served("tf.GraphKeys.GLOBAL_VARIABLES", "1.0"),
}


def _function(name: str) -> str:
    return name.replace(".", "_")


def _table() -> dict[str, Served]:
    table = {old: Served("tf." + new, "1.0") for old, new in _RENAMED.items()}
    table.update({n: Served(f"{_OWN}calls.arguments:{_function(n)}", "1.0") for n in _ARGUMENTS})
    table.update({n: Served(f"{_OWN}calls.classes:{c}", "1.0") for n, c in _CLASSES.items()})
    table.update({n: Served(f"{_OWN}cluster.distributed:{c}", "") for n, c in _DISTRIBUTED.items()})
    table.update({n: Served(f"{_OWN}calls.summaries:{n}", "1.0") for n in _SUMMARIES})
    table.update(_MODULES)
    table.update(_VALUES)
    table.update({n: Served(by, gone) for n, (by, gone) in contrib_names.OUTSIDE.items()})
    for old, (by, note) in contrib_names.NAMES.items():
        table["contrib." + old] = Served(by, "2.0", note)
    return table


NAMES: Mapping[str, Served] = _table()


# Names that accept more than contrib of TensorFlow 1.15: calls of 0.x, local data.
_ADAPTERS = (_OWN + "contrib.cells:", _OWN + "calls.summaries:", _OWN + "tutorials.")


def adapts(name: str) -> bool:
    """Whether an entry also applies where the installed TensorFlow has the name itself."""
    entry = NAMES.get(name)
    return entry is not None and entry.by.startswith(_ADAPTERS) and not entry.by.endswith("cells:")


def under(name: str) -> bool:
    """Whether the table has names below `name`, as "nn.seq2seq" is below "nn"."""
    return name in _PACKAGES


_PACKAGES = {
    name.rsplit(".", count)[0] for name in NAMES for count in range(1, name.count(".") + 1)
}


def find(name: str) -> Served | None:
    """Returns the entry of `name`, or of the nearest parent that is a whole module.

    Args:
      name: without "tf." or "tensorflow.", as "contrib.slim.conv2d".
    """
    if name in NAMES:
        return NAMES[name]
    above = name
    while "." in above:
        above = above.rpartition(".")[0]
        entry = NAMES.get(above)
        if entry is not None:
            return entry if entry.by.endswith(":") or not entry.by else None
    return None
