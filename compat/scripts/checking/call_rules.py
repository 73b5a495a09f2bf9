"""Rules that recognize calls whose arguments changed order or meaning.

TensorFlow still has these names; a finding needs a rule that matches the call. Calls that
TensorFlow 2 rejects are of kind `SERVED`; calls that it computes differently are `CHANGES`.
"""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterator, Mapping, NamedTuple

from compat.scripts.checking.findings import CHANGES, SERVED, Finding, Kind
from compat.scripts.checking.uses import Use
from compat.scripts.names import packages, table
from compat.scripts.source import literals


class Rule(NamedTuple):
    """A rule that recognizes an old call; its message follows the name of the function."""

    kind: Kind
    is_old: Callable[[ast.Call, bool], bool]  # Also given whether the file uses names of 0.x.
    says: str


def find(use: Use, call: ast.Call, is_0x: bool) -> Iterator[Finding]:
    """Yields what is known about a call of a name."""
    name = use.name
    renamed = {} if use.is_tensorflow else packages.ARGUMENTS.get(name, {})
    for keyword in call.keywords:
        new = renamed.get(keyword.arg or "")
        if new is not None:
            how = f"passes it as {new}=" if new else "ignores it"
            yield Finding(SERVED, name, f"{name} took {keyword.arg}=; compat run {how}", name)
    for rule in RULES.get(name, ()) if use.is_tensorflow else ():
        if rule.is_old(call, is_0x):
            by = table.NAMES[name].by.replace(":", ".") if name in table.NAMES else ""
            yield Finding(rule.kind, f"tf.{name}", f"tf.{name} {rule.says}", by)


def _args(call: ast.Call) -> list[ast.expr]:
    """Returns the positional arguments; none if the call unpacks a sequence with `*`."""
    return [] if any(isinstance(arg, ast.Starred) for arg in call.args) else call.args


def _has(*keywords: str) -> Callable[[ast.Call, bool], bool]:
    return lambda call, _: any(keyword.arg in keywords for keyword in call.keywords)


def _at_least(count: int) -> Callable[[ast.Call, bool], bool]:
    return lambda call, _: len(_args(call)) >= count


def _is_named(node: ast.AST, pattern: str) -> bool:
    """Whether any name in an expression matches: variables are often named after arguments."""
    return any(re.search(pattern, name, re.IGNORECASE) for name in literals.identifiers(node))


def _is_axis(node: ast.AST) -> bool:
    return literals.is_whole(node) or (isinstance(node, ast.Name) and _is_named(node, "dim|axis"))


def _by_position(call: ast.Call, _: bool) -> bool:
    # In 1.x the first argument was a sentinel, always None, that forced keywords.
    return bool(_args(call)) and not literals.is_none(call.args[0])


def _concat(call: ast.Call, is_0x: bool) -> bool:
    args = _args(call)
    return _has("concat_dim")(call, is_0x) or (
        bool(args)
        and not isinstance(args[0], (ast.List, ast.Tuple, ast.ListComp))
        and (_is_axis(args[0]) or (len(args) > 1 and isinstance(args[1], (ast.List, ast.ListComp))))
    )


def _split(call: ast.Call, is_0x: bool) -> bool:
    args = _args(call)
    return _has("split_dim", "num_split")(call, is_0x) or (len(args) > 1 and _is_axis(args[0]))


def _reverse(call: ast.Call, is_0x: bool) -> bool:
    flags = [arg for arg in _args(call)[1:2] if isinstance(arg, (ast.List, ast.Tuple))]
    return _has("dims")(call, is_0x) or any(
        isinstance(literals.value(flag), bool) for arg in flags for flag in arg.elts
    )


def _resize(call: ast.Call, is_0x: bool) -> bool:
    args = _args(call)
    return _has("new_height")(call, is_0x) or (
        len(args) > 2
        and (literals.is_whole(args[1]) or _is_named(args[1], "height|^h$|size"))
        and not isinstance(args[1], (ast.List, ast.Tuple))
        and not _is_named(args[2], "method")
    )


def _svd(call: ast.Call, _: bool) -> bool:
    args = _args(call)
    return len(args) > 2 and literals.value(args[1]) != literals.value(args[2])


def _inputs_first(call: ast.Call, is_0x: bool) -> bool:
    args = _args(call)
    if len(args) < 4 or _is_named(args[2], "label|target"):
        return False
    return is_0x or _is_named(args[3], "label|target")


def _both(is_old: Callable[[ast.Call, bool], bool], says: str) -> Rule:
    return Rule(SERVED, is_old, f"{says}; compat run accepts both")


def _ignored(keyword: str) -> Rule:
    return Rule(SERVED, _has(keyword), f"took {keyword}=; compat run ignores it")


_LOGITS = Rule(
    CHANGES,
    _by_position,
    "took (logits, labels) by position before 1.0; TensorFlow 2 takes (labels, logits), so it "
    "computes with the two swapped; compat run restores the old order",
)
_TARGETS = _both(_has("targets"), "took targets=, now labels=")
_SAMPLED = Rule(
    CHANGES,
    _inputs_first,
    "took (weights, biases, inputs, labels) before 1.0; TensorFlow 2 takes labels before inputs; "
    "compat run decides by types and shapes",
)
_SHAPE = _both(_has("shape"), "took shape=, now dense_shape=")
_MEAN = Rule(
    CHANGES,
    _at_least(2),
    "returned one mean; in TensorFlow 2 this name is Keras's function, which returns one mean per "
    "row; compat run has the old function",
)
_DROPOUT = Rule(
    CHANGES,
    _at_least(2),
    "took the probability to keep as its second argument; TensorFlow 2 takes the rate to drop; "
    "compat run keeps the old meaning",
)
_WEIGHTED = Rule(
    CHANGES,
    _at_least(2),
    "took (logits, targets) in 0.x and (targets, logits) in 1.x; TensorFlow 2 takes (labels, "
    "logits); run it with compat run --era=0.x or --era=1.x",
)
_MATRICES = Rule(
    CHANGES,
    _svd,
    "took compute_uv before full_matrices until 0.11; TensorFlow 2 takes them in the other order; "
    "run it with compat run --era=0.x or --era=1.x",
)

RULES: Mapping[str, tuple[Rule, ...]] = {
    "SparseTensor": (_SHAPE,),
    "SparseTensorValue": (_SHAPE,),
    "concat": (_both(_concat, "took (concat_dim, values) before 1.0"),),
    "image.resize_images": (_both(_resize, "took height and width before 1.0, now one size"),),
    "losses.mean_squared_error": (_MEAN,),
    "nn.dropout": (_DROPOUT,),
    "nn.nce_loss": (_SAMPLED,),
    "nn.sampled_softmax_loss": (_SAMPLED,),
    "nn.sigmoid_cross_entropy_with_logits": (_LOGITS, _TARGETS),
    "nn.softmax_cross_entropy_with_logits": (_LOGITS,),
    "nn.softmax_cross_entropy_with_logits_v2": (_LOGITS,),
    "nn.sparse_softmax_cross_entropy_with_logits": (_LOGITS,),
    "nn.weighted_cross_entropy_with_logits": (_WEIGHTED, _TARGETS),
    "reverse": (_both(_reverse, "took a flag for each dimension before 1.0"),),
    "sparse_split": (
        _both(_at_least(2), "took (split_dim, num_split, sp_input)"),
        _both(_has("split_dim"), "took split_dim=, now axis="),
    ),
    "split": (_both(_split, "took (split_dim, num_split, value) before 1.0"),),
    "svd": (_MATRICES,),
    "train.Supervisor": (_ignored("graph_def"),),
    "train.SyncReplicasOptimizer": (_ignored("replica_id"),),
}
