"""Rules for calls whose arguments had another order, name or meaning.

`FORMS` has the old forms of calls, by function of TensorFlow. A rule finds the calls in forms that
have its id, and by default rewrites them with the names of their arguments.
"""

from __future__ import annotations

import ast
from typing import Iterator, Mapping

from compat.scripts.names import table
from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, Program, Remark
from compat.scripts.reading.uses import Use
from compat.scripts.rules.forms import (
    LISTS,
    Form,
    at_least,
    axis_first,
    is_found,
    is_named,
    is_old,
    positional,
    rewritten,
)
from compat.scripts.rules.rule import CHANGES, SERVED, Finder, Finding, Found, Rewriter, Rule


def findings(use: Use, is_0x: bool) -> Iterator[Finding]:
    """Yields the findings for a use that is a call of TensorFlow in an old form."""
    for call, form in _forms(use):
        if is_found(form, call, is_0x):
            plain = table.plain(use.name)
            entry = table.NAMES.get(plain)
            by = table.importable(entry.by, "compat.v1." + plain) if entry else ""
            yield Finding(form.rule, form.kind, f"tf.{use.name}", f"tf.{use.name} {form.says}", by)


def _forms(use: Use) -> Iterator[tuple[ast.Call, Form]]:
    """Yields the call of a use with each old form of its function.

    If the script calls the function as one of `tf.compat.v1`, forms that this still accepts are
    skipped.
    """
    if use.call is None or not use.is_tensorflow:
        return
    plain = table.plain(use.name)
    for form in FORMS.get(plain, ()):
        if use.name == plain:
            yield use.call, form
        elif not form.is_kept:
            in_v1 = form._replace(kind=SERVED, says=form.in_v1 or "")
            yield use.call, form if form.in_v1 is None else in_v1


def _calls(program: Program, rule: str) -> Iterator[tuple[Use, ast.Call, Form]]:
    """Yields a program's calls of functions that have old forms, with each old form in a rule.

    The call may be in another form. Each item is the use of the function's name, the call and the
    old form.
    """
    for use in program.uses:
        for call, form in _forms(use):
            if form.rule == rule:
                yield use, call, form


def _finder(rule: str) -> Finder:
    def find(program: Program) -> Iterator[Found]:
        for use in program.uses:
            for finding in findings(use, program.is_0x):
                if finding.rule == rule:
                    yield Found(use.node, use.spelled, finding)

    return find


def _rewriter(rule: str) -> Rewriter:
    def rewrite(program: Program) -> Iterator[Edit]:
        for _, call, form in _calls(program, rule):
            yield from rewritten(program, call, form)

    return rewrite


def _is_old_concat(call: ast.Call, _: bool) -> bool | None:
    first, second = [*call.args, None][:2]
    if isinstance(first, LISTS) or (second is not None and literals.is_whole(second)):
        return False
    if first is not None and literals.is_whole(first):
        return True
    return False if second is None else (True if isinstance(second, LISTS) else None)


def _is_old_split(call: ast.Call, _: bool) -> bool | None:
    if len(call.args) < 3:
        return any(keyword.arg == "value" for keyword in call.keywords)
    first, third = call.args[0], call.args[2]
    if literals.is_whole(first) or literals.is_whole(third):
        return literals.is_whole(first)
    return None


def _by_position(call: ast.Call, _: bool) -> bool:
    # In 1.x the first argument was a sentinel, always None, that forced keywords.
    return not literals.is_none(call.args[0])


def _has_size(call: ast.Call, _: bool) -> bool | None:
    args = call.args
    if len(args) < 3 or isinstance(args[1], LISTS):
        return False
    return True if literals.is_whole(args[1]) and not isinstance(args[2], ast.BinOp) else None


def _is_likely_size(call: ast.Call, _: bool) -> bool:
    height, width = call.args[1:3]
    is_size = literals.is_whole(height) or is_named(height, "height|^h$|size")
    return is_size and not is_named(width, "method")


def _rewrite_sizes(program: Program) -> Iterator[Edit]:
    for _, call, form in _calls(program, "sizes"):
        if is_old(program, call, form):
            start, _ = program.argument(call, call.args[1])
            _, end = program.argument(call, call.args[2])
            yield Edit(start, start, "[")
            yield Edit(end, end, "]")


def _svd(call: ast.Call, _: bool) -> bool:
    args = positional(call)
    return len(args) > 2 and literals.value(args[1]) != literals.value(args[2])


def _remark_era(program: Program) -> Iterator[Remark]:
    for use, call, form in _calls(program, "era"):
        if is_found(form, call, program.is_0x):
            says, asked = form.says.split(";")[0], "=, ".join(form.names)
            yield Remark(call, f"tf.{use.name} {says}; write the names: {asked}=")


def _inputs_first(call: ast.Call, is_0x: bool) -> bool:
    args = positional(call)
    if len(args) < 4 or is_named(args[2], "label|target"):
        return False
    return is_0x or is_named(args[3], "label|target")


def _has_flags(call: ast.Call, _: bool) -> bool:
    lists = [arg for arg in call.args[1:2] if isinstance(arg, (ast.List, ast.Tuple))]
    return any(isinstance(literals.value(flag), bool) for arg in lists for flag in arg.elts)


def _ignored(name: str) -> Form:
    return Form("arguments", SERVED, f"took {name}=; compat run ignores it", keywords={name: ""})


_LOGITS = Form(
    "losses",
    CHANGES,
    "took (logits, labels) by position before 1.0; TensorFlow 2 takes (labels, logits), so it "
    "computes with the two swapped; compat run restores the old order",
    _by_position,
    names=("logits", "labels", "name"),
    in_v1="took (logits, labels) by position before 1.0; compat run restores the old order",
)
_OF_DIM = _LOGITS._replace(names=("logits", "labels", "dim", "name"))
_TARGETS = Form(
    "losses",
    SERVED,
    "took targets=, now labels=; compat run accepts both",
    keywords={"targets": "labels"},
)
_SHAPE = Form(
    "shapes",
    SERVED,
    "took shape=, now dense_shape=; compat run accepts both",
    keywords={"shape": "dense_shape"},
)
_SAMPLED = Form(
    "sampled",
    CHANGES,
    "took (weights, biases, inputs, labels) before 1.0; TensorFlow 2 takes labels before inputs; "
    "compat run decides by types and shapes",
    _inputs_first,
)

# The old forms of the calls of each function.
FORMS: Mapping[str, tuple[Form, ...]] = {
    # TensorFlow 1.0: "`tf.concat` now takes arguments in reversed order and with different
    # keywords. In particular we now match NumPy order as `tf.concat(values, axis, name)`."
    "concat": (
        Form(
            "concat",
            SERVED,
            "took (concat_dim, values) before 1.0; compat run accepts both",
            _is_old_concat,
            axis_first,
            ("axis", "values", "name"),
            {"concat_dim": "axis"},
        ),
    ),
    # TensorFlow 1.0: "`tf.split` now takes arguments in a reversed order and with different
    # keywords. In particular, we now match NumPy order as
    # `tf.split(value, num_or_size_splits, axis)`."
    "sparse_split": (
        Form(
            "split",
            SERVED,
            "took (split_dim, num_split, sp_input) before 1.0; compat run accepts both",
            at_least(2),
            names=("axis", "num_split", "sp_input", "name"),
            keywords={"split_dim": "axis"},
        ),
    ),
    "split": (
        Form(
            "split",
            SERVED,
            "took (split_dim, num_split, value) before 1.0; compat run accepts both",
            _is_old_split,
            axis_first,
            ("axis", "num_or_size_splits", "value", "name"),
            {"split_dim": "axis", "num_split": "num_or_size_splits"},
        ),
    ),
    # TensorFlow 1.0: "Change arg order for `{softmax,sparse_softmax,sigmoid}_cross_entropy_with_
    # logits` to be (labels, predictions), and force use of named args."
    "nn.sigmoid_cross_entropy_with_logits": (_LOGITS, _TARGETS),
    "nn.softmax_cross_entropy_with_logits": (_OF_DIM,),
    "nn.softmax_cross_entropy_with_logits_v2": (_OF_DIM,),
    "nn.sparse_softmax_cross_entropy_with_logits": (_LOGITS,),
    # Neither names nor types show in which order a script gives the arguments of this function and
    # of `tf.svd`. The release notes mention neither order.
    "nn.weighted_cross_entropy_with_logits": (
        Form(
            "era",
            CHANGES,
            "took (logits, targets) in 0.x and (targets, logits) in 1.x; TensorFlow 2 takes "
            "(labels, logits); run it with compat run --era=0.x or --era=1.x",
            at_least(2),
            names=("targets", "logits", "pos_weight"),
        ),
        _TARGETS,
    ),
    "svd": (
        Form(
            "era",
            CHANGES,
            "took compute_uv before full_matrices until 0.11; TensorFlow 2 takes them in the other "
            "order; run it with compat run --era=0.x or --era=1.x",
            _svd,
            names=("full_matrices", "compute_uv"),
        ),
    ),
    # TensorFlow 1.0: "The shape keyword argument of the `SparseTensor` constructor changes its name
    # to `dense_shape` between Tensorflow 0.12 and Tensorflow 1.0."
    "SparseTensor": (_SHAPE,),
    "SparseTensorValue": (_SHAPE,),
    # TensorFlow 1.0 takes one argument, `size`, in the place of the two; its release notes do not
    # say so.
    "image.resize_images": (
        Form(
            "sizes",
            SERVED,
            "took height and width before 1.0, now one size; compat run accepts both",
            _has_size,
            _is_likely_size,
            keywords={"new_height": ""},
        ),
    ),
    # TensorFlow 1.0: "`tf.nn.sampled_softmax_loss` and `tf.nn.nce_loss` have both changed their API
    # such that you need to switch the `inputs, labels` to `labels, inputs` parameters."
    "nn.nce_loss": (_SAMPLED,),
    "nn.sampled_softmax_loss": (_SAMPLED,),
    # TensorFlow 2.0 takes `rate`, the probability to drop, as its second argument; `tf.compat.v1`
    # has the old function.
    "nn.dropout": (
        Form(
            "dropout",
            CHANGES,
            "took the probability to keep as its second argument; TensorFlow 2 takes the rate to "
            "drop; compat run keeps the old meaning",
            at_least(2),
            is_kept=True,
        ),
    ),
    # In TensorFlow 2.0 `tf.losses` is Keras's; `tf.compat.v1` has the old function.
    "losses.mean_squared_error": (
        Form(
            "means",
            CHANGES,
            "returned one mean; in TensorFlow 2 this name is Keras's function, which returns one "
            "mean per row; compat run has the old function",
            at_least(2),
            is_kept=True,
        ),
    ),
    # TensorFlow 1.0: "tf.reverse() now takes indices of axes to be reversed. E.g.
    # `tf.reverse(a, [True, False, True])` must now be written as `tf.reverse(a, [0, 2])`."
    "reverse": (
        Form(
            "reverse",
            SERVED,
            "took a flag for each dimension before 1.0; compat run accepts both",
            _has_flags,
            keywords={"dims": ""},
        ),
    ),
    "train.Supervisor": (_ignored("graph_def"),),
    "train.SyncReplicasOptimizer": (_ignored("replica_id"),),
}


def _rule(
    name: str,
    gone: str,
    says: str,
    before: str,
    after: str = "",
    optional: bool = True,
    rewrite: Rewriter | None = None,
) -> Rule:
    if not after:
        return Rule(name, gone, says, before, find=_finder(name))
    rewrite = rewrite or _rewriter(name)
    return Rule(name, gone, says, before, after, optional, _finder(name), rewrite)


RULES = (
    _rule(
        "concat",
        "1.0",
        "tf.concat took the axis first",
        "tf.concat(1, [x, y])",
        "tf.concat(axis=1, values=[x, y])",
    ),
    _rule(
        "split",
        "1.0",
        "tf.split took the axis first",
        "tf.split(0, 2, x)",
        "tf.split(axis=0, num_or_size_splits=2, value=x)",
    ),
    _rule(
        "losses",
        "1.0",
        "losses took logits before labels",
        "tf.nn.softmax_cross_entropy_with_logits(y, y_)",
        "tf.nn.softmax_cross_entropy_with_logits(logits=y, labels=y_)",
    ),
    _rule(
        "shapes",
        "1.0",
        "sparse tensors took shape=",
        "tf.SparseTensor(indices=x, values=y, shape=z)",
        "tf.SparseTensor(indices=x, values=y, dense_shape=z)",
    ),
    _rule(
        "sizes",
        "1.0",
        "images were resized to height and width",
        "tf.image.resize_images(x, 24, 32)",
        "tf.image.resize_images(x, [24, 32])",
        rewrite=_rewrite_sizes,
    ),
    _rule(
        "era",
        "0.x, 1.0",
        "calls whose meaning depends on the age of the script alone are left, with a remark",
        "tf.svd(x, True, False)",
        "# compat 1: tf.svd took compute_uv before full_matrices until 0.11; write the names: "
        "full_matrices=, compute_uv=\n"
        "tf.svd(x, True, False)",
        optional=False,
        rewrite=_remark_era,
    ),
    _rule(
        "sampled",
        "1.0",
        "sampled losses took inputs before labels",
        "tf.nn.nce_loss(w, b, embed, train_labels, 64, 50000)",
    ),
    _rule("dropout", "2.0", "tf.nn.dropout took the probability to keep", "tf.nn.dropout(x, 0.75)"),
    _rule(
        "means",
        "2.0",
        "tf.losses.mean_squared_error returned one mean",
        "tf.losses.mean_squared_error(x, y)",
    ),
    _rule(
        "reverse",
        "1.0",
        "tf.reverse took a flag for each dimension",
        "tf.reverse(x, [True, False])",
    ),
    _rule(
        "arguments",
        "1.0",
        "arguments that are ignored",
        'tf.train.Supervisor(logdir="logs", graph_def=x)',
    ),
)
