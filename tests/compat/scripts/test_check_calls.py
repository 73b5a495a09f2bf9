"""Which calls a check takes for old ones, by their arguments."""

from __future__ import annotations

import inspect
import operator
from pathlib import Path

import pytest

from compat._tensorflow import tf1
from compat.scripts.names import table
from compat.scripts.rules.calls import FORMS
from compat.scripts.rules.sources import check

# Names that are served with their old arguments, and gone for good: found wherever they are used.
_GONE = {
    "batch_matmul",
    "contrib.nn.deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "contrib.nn.deprecated_flipped_softmax_cross_entropy_with_logits",
    "contrib.nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "op_scope",
    "select",
    "train.SyncReplicasOptimizerV2",
    "variable_op_scope",
}


def kinds(tmp_path: Path, call: str, before: str = "") -> list[str]:
    path = tmp_path / "script.py"
    path.write_text(f"import tensorflow as tf\n{before}\n{call}\n", encoding="utf-8")
    return [finding.kind.name for finding in check(str(path))]


@pytest.mark.parametrize(
    "call",
    [
        "tf.nn.softmax_cross_entropy_with_logits(y, y_)",
        "tf.nn.softmax_cross_entropy_with_logits(y, labels=y_)",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(y, y_, name='loss')",
        "tf.nn.sigmoid_cross_entropy_with_logits(y, y_)",
        "tf.nn.weighted_cross_entropy_with_logits(a, b, 2.0)",
        "tf.nn.nce_loss(w, b, embed, train_labels, 64, 50000)",
        "tf.nn.sampled_softmax_loss(w, b, inputs, labels, 64, 50000)",
        "tf.nn.dropout(x, 0.75)",
        "tf.losses.mean_squared_error(y_, y)",
        "tf.svd(x, True, False)",
    ],
)
def test_call_that_means_something_else_changes(call: str, tmp_path: Path) -> None:
    assert kinds(tmp_path, call) == ["changes"]


@pytest.mark.parametrize(
    "call",
    [
        "tf.concat(1, [a, b])",
        "tf.concat(dim, [a, b])",
        "tf.concat(concat_dim=1, values=[a, b])",
        "tf.concat(-1, parts)",
        "tf.split(0, 2, x)",
        "tf.split(split_dim=0, num_split=2, value=x)",
        "tf.reverse(x, [True, False])",
        "tf.reverse(x, dims=[True, False])",
        "tf.sparse_split(0, 2, x)",
        "tf.image.resize_images(x, 24, 24)",
        "tf.image.resize_images(x, height, width)",
        "tf.image.resize_images(x, new_height=24, new_width=24)",
        "tf.SparseTensor(indices=i, values=v, shape=[3, 4])",
        "tf.train.Supervisor(logdir='logs', graph_def=g)",
        "tf.train.SyncReplicasOptimizer(o, 3, replica_id=1)",
        "tf.nn.sigmoid_cross_entropy_with_logits(logits=y, targets=y_)",
        "tf.select(c, a, b)",
        "tf.batch_matmul(a, b)",
    ],
)
def test_call_that_today_is_an_error_is_served(call: str, tmp_path: Path) -> None:
    assert kinds(tmp_path, call) == ["served"]


@pytest.mark.parametrize(
    "call",
    [
        "tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y)",
        "tf.nn.softmax_cross_entropy_with_logits(None, labels=y_, logits=y)",
        "tf.nn.softmax_cross_entropy_with_logits(**arguments)",
        "tf.nn.softmax_cross_entropy_with_logits(*arguments)",
        "tf.nn.nce_loss(w, b, labels, embed, 64, 50000)",
        "tf.nn.nce_loss(w, b, y, x, 64, 50000)",
        "tf.nn.nce_loss(weights=w, biases=b, labels=y, inputs=x)",
        "tf.nn.dropout(x, keep_prob=0.75)",
        "tf.concat([a, b], 1)",
        "tf.concat(parts, 1)",
        "tf.concat(values=[a, b], axis=1)",
        "tf.split(x, 2, 0)",
        "tf.split(x, [1, 2], axis=1)",
        "tf.reverse(x, [0, 1])",
        "tf.reverse(x, axis=[0])",
        "tf.image.resize_images(x, [24, 24])",
        "tf.image.resize_images(x, size, method)",
        "tf.SparseTensor(indices=i, values=v, dense_shape=[3, 4])",
        "tf.SparseTensor(i, v, [3, 4])",
        "tf.svd(x)",
    ],
)
def test_call_of_today_is_not_found(call: str, tmp_path: Path) -> None:
    assert kinds(tmp_path, call) == []


def test_names_of_the_time_tell_the_order_of_arguments(tmp_path: Path) -> None:
    call = "tf.nn.nce_loss(w, b, x, y, 64, 50000)"
    assert kinds(tmp_path, call, before="tf.neg(1)") == ["served", "changes"]


@pytest.mark.parametrize(
    "alias",
    [
        "from tensorflow.nn import softmax_cross_entropy_with_logits as loss",
        "loss = tf.nn.softmax_cross_entropy_with_logits",
        "nn = tf.nn\nloss = nn.softmax_cross_entropy_with_logits",
    ],
)
def test_call_by_another_name_is_found(alias: str, tmp_path: Path) -> None:
    assert kinds(tmp_path, "loss(y, y_)", before=alias) == ["changes"]


def test_what_is_ambiguous_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("import tensorflow as tf\ntf.nn.weighted_cross_entropy_with_logits(a, b, 2)\n")
    (finding,) = check(str(path))
    assert "--era=0.x or --era=1.x" in finding.message


def test_names_with_old_arguments_have_a_rule_or_are_gone() -> None:
    """A name that is still there, without a rule, would be found in every script that is right."""
    served = {
        name
        for name, entry in table.NAMES.items()
        if entry.by.startswith(("compat.scripts.shims.arguments:", "compat.scripts.shims.classes:"))
        and entry.gone
    }
    assert served - _GONE <= set(FORMS)
    assert not _GONE & set(FORMS)


def test_rules_say_what_compat_run_does() -> None:
    said = [known.says for calls in FORMS.values() for known in calls]
    assert [text for text in said if "compat run" not in text] == []


def test_new_names_of_arguments_are_those_of_tensorflow() -> None:
    wrong = {
        (name, argument)
        for name, forms in FORMS.items()
        for form in forms
        for argument in {*form.names, *form.keywords.values()} - {""}
        if argument not in inspect.signature(operator.attrgetter(name)(tf1)).parameters
    }
    assert wrong == set()
