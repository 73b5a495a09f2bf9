"""Calls that were right in their time and are another call today: the rules for their arguments.

A name with rules is still there; it is found only where a rule sees an old call. What TensorFlow 2
refuses aloud is of kind `SERVED`; what it takes, to compute something else, is of kind `CHANGES`.
"""

from __future__ import annotations

import ast
import re
from typing import Callable, Mapping, NamedTuple

from compat.scripts.checking import literals
from compat.scripts.checking.findings import CHANGES, SERVED, Kind


class Rule(NamedTuple):
    """How an old call is told, and what is to say about it.

    Attributes:
      kind: of the finding.
      is_old: whether a call is one, given the call and whether its file has names of 0.x.
      says: follows the name of the function.
    """

    kind: Kind
    is_old: Callable[[ast.Call, bool], bool]
    says: str


def _args(call: ast.Call) -> list[ast.expr]:
    """Returns the arguments by position; none if there is a `*` among them, which hides them."""
    return [] if any(isinstance(arg, ast.Starred) for arg in call.args) else call.args


def _has(*keywords: str) -> Callable[[ast.Call, bool], bool]:
    """Tells calls with any of these arguments by name."""
    return lambda call, _: any(keyword.arg in keywords for keyword in call.keywords)


def _at_least(count: int) -> Callable[[ast.Call, bool], bool]:
    """Tells calls with that many arguments by position."""
    return lambda call, _: len(_args(call)) >= count


def _is_whole(node: ast.AST) -> bool:
    value = literals.value(node)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_named(node: ast.AST, pattern: str) -> bool:
    """Whether any name in an expression matches; people name variables after arguments."""
    return any(re.search(pattern, name, re.IGNORECASE) for name in literals.identifiers(node))


def _is_axis(node: ast.AST) -> bool:
    return _is_whole(node) or (isinstance(node, ast.Name) and _is_named(node, "dim|axis"))


def _by_position(call: ast.Call, _: bool) -> bool:
    # 1.x had a first argument, always None, that kept the others from being given by position.
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
        and (_is_whole(args[1]) or _is_named(args[1], "height|^h$|size"))
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


_LOGITS = Rule(
    CHANGES,
    _by_position,
    "took (logits, labels) by position before 1.0; TensorFlow 2 takes (labels, logits), so it "
    "computes with the two swapped; compat run takes them as they were meant",
)
_TARGETS = Rule(SERVED, _has("targets"), "took targets=, now labels=; compat run takes both")
_SAMPLED = Rule(
    CHANGES,
    _inputs_first,
    "took (weights, biases, inputs, labels) before 1.0; TensorFlow 2 takes labels before inputs; "
    "compat run tells them by their types and shapes",
)
_SHAPE = Rule(SERVED, _has("shape"), "took shape=, now dense_shape=; compat run takes both")

RULES: Mapping[str, tuple[Rule, ...]] = {
    "SparseTensor": (_SHAPE,),
    "SparseTensorValue": (_SHAPE,),
    "concat": (
        Rule(SERVED, _concat, "took (concat_dim, values) before 1.0; compat run takes both orders"),
    ),
    "image.resize_images": (
        Rule(
            SERVED, _resize, "took height and width before 1.0, now one size; compat run takes both"
        ),
    ),
    "losses.mean_squared_error": (
        Rule(
            CHANGES,
            _at_least(2),
            "gave the mean of all; the function of this name in TensorFlow 2, Keras's, gives one "
            "for each row; under compat run it is the old one",
        ),
    ),
    "nn.dropout": (
        Rule(
            CHANGES,
            _at_least(2),
            "took what to keep as its second argument; TensorFlow 2 takes what to drop there; "
            "under compat run it is what to keep",
        ),
    ),
    "nn.nce_loss": (_SAMPLED,),
    "nn.sampled_softmax_loss": (_SAMPLED,),
    "nn.sigmoid_cross_entropy_with_logits": (_LOGITS, _TARGETS),
    "nn.softmax_cross_entropy_with_logits": (_LOGITS,),
    "nn.softmax_cross_entropy_with_logits_v2": (_LOGITS,),
    "nn.sparse_softmax_cross_entropy_with_logits": (_LOGITS,),
    "nn.weighted_cross_entropy_with_logits": (
        Rule(
            CHANGES,
            _at_least(2),
            "took (logits, targets) in 0.x and (targets, logits) in 1.x; TensorFlow 2 takes "
            "(labels, logits); tell compat run which, by --era=0.x or --era=1.x",
        ),
        _TARGETS,
    ),
    "reverse": (
        Rule(SERVED, _reverse, "took a flag for each dimension before 1.0; compat run takes both"),
    ),
    "sparse_split": (
        Rule(SERVED, _at_least(2), "took (split_dim, num_split, sp_input); compat run takes it"),
        Rule(SERVED, _has("split_dim"), "took split_dim=, now axis=; compat run takes both"),
    ),
    "split": (
        Rule(
            SERVED,
            _split,
            "took (split_dim, num_split, value) before 1.0; compat run takes both orders",
        ),
    ),
    "svd": (
        Rule(
            CHANGES,
            _svd,
            "took compute_uv before full_matrices until 0.11; TensorFlow 2 takes them the other "
            "way round; tell compat run which, by --era=0.x or --era=1.x",
        ),
    ),
    "train.Supervisor": (
        Rule(SERVED, _has("graph_def"), "took graph_def=; compat run passes over it"),
    ),
    "train.SyncReplicasOptimizer": (
        Rule(SERVED, _has("replica_id"), "took replica_id=; compat run passes over it"),
    ),
}
