"""Rules that recognize calls whose arguments changed order or meaning.

TensorFlow still has these names; a finding needs an entry that matches the call. Calls that
TensorFlow 2 rejects are of kind `SERVED`; calls that it computes differently are `CHANGES`.
"""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterator, Mapping, NamedTuple, Union

from compat.scripts.checking.findings import CHANGES, SERVED, Finding, Kind
from compat.scripts.checking.uses import Use
from compat.scripts.names import packages, table
from compat.scripts.source import literals

_KEPT = {"dropout", "means"}  # Rules of names that `tf.compat.v1` has as they were.
_LISTS = (ast.List, ast.Tuple, ast.ListComp)
_Ask = Callable[[ast.Call, bool], Union[bool, None]]


def _never(call: ast.Call, is_0x: bool) -> bool:
    del call, is_0x
    return False


class Call(NamedTuple):
    """An old form of a call; what it says follows the name of the function."""

    rule: str
    kind: Kind
    says: str
    # Whether the order is old, or None if only values tell; also given whether names are of 0.x.
    is_old: _Ask = _never
    is_likely: _Ask = _never  # Whether a call of which only values tell is probably old.
    names: tuple[str, ...] = ()  # Of the arguments in the old order, today.
    keywords: Mapping[str, str] = {}  # Names of arguments that have changed, and today's, if any.


def find(use: Use, call: ast.Call, is_0x: bool) -> Iterator[Finding]:
    """Yields what is known about a call of a name."""
    name = use.name
    renamed = {} if use.is_tensorflow else packages.ARGUMENTS.get(name, {})
    for keyword in call.keywords:
        new = renamed.get(keyword.arg or "")
        if new is not None:
            how = f"passes it as {new}=" if new else "ignores it"
            message = f"{name} took {keyword.arg}=; compat run {how}"
            yield Finding("packages", SERVED, name, message, name)
        values = packages.VALUES.get(name, {}).get(keyword.arg or "", {})
        old = literals.value(keyword.value)
        if isinstance(old, str) and old in values:
            message = f"{name} took {keyword.arg}={old!r}; compat run passes {values[old]!r}"
            yield Finding("packages", SERVED, name, message, name)
    for known in of_name(name) if use.is_tensorflow else ():
        if is_found(known, call, is_0x):
            entry = table.NAMES.get(table.plain(name))
            by = table.importable(entry.by, "compat.v1." + table.plain(name)) if entry else ""
            yield Finding(known.rule, known.kind, f"tf.{name}", f"tf.{name} {known.says}", by)


def of_name(name: str) -> list[Call]:
    """Returns the old forms of the calls of a name; `tf.compat.v1` kept the meaning of some."""
    known = CALLS.get(table.plain(name), ())
    if name == table.plain(name):
        return [*known]
    return [
        form._replace(kind=SERVED, says=form.says.replace(_SWAPPED, ""))  # It refuses the order.
        if form.rule == "losses"
        else form
        for form in known
        if form.rule not in _KEPT
    ]


def is_found(known: Call, call: ast.Call, is_0x: bool) -> bool:
    """Whether a call probably has the old form."""
    if any(keyword.arg in known.keywords for keyword in call.keywords):
        return True
    is_old = bool(_args(call)) and known.is_old(call, is_0x)
    return known.is_likely(call, is_0x) is True if is_old is None else is_old


def _args(call: ast.Call) -> list[ast.expr]:
    """Returns the positional arguments; none if the call unpacks a sequence with `*`."""
    return [] if any(isinstance(arg, ast.Starred) for arg in call.args) else call.args


def _at_least(count: int) -> Callable[[ast.Call, bool], bool]:
    return lambda call, _: len(_args(call)) >= count


def _is_named(node: ast.AST, pattern: str) -> bool:
    """Whether any name in an expression matches: variables are often named after arguments."""
    return any(re.search(pattern, name, re.IGNORECASE) for name in literals.identifiers(node))


def _is_axis(node: ast.AST) -> bool:
    return literals.is_whole(node) or (isinstance(node, ast.Name) and _is_named(node, "dim|axis"))


def _by_position(call: ast.Call, _: bool) -> bool:
    # In 1.x the first argument was a sentinel, always None, that forced keywords.
    return not literals.is_none(call.args[0])


def _axis_first(call: ast.Call, _: bool) -> bool:
    return _is_axis(call.args[0])


def _concat(call: ast.Call, _: bool) -> bool | None:
    first, second = [*call.args, None][:2]
    if isinstance(first, _LISTS) or (second is not None and literals.is_whole(second)):
        return False
    if first is not None and literals.is_whole(first):
        return True
    return False if second is None else (True if isinstance(second, _LISTS) else None)


def _split(call: ast.Call, _: bool) -> bool | None:
    if len(call.args) < 3:
        return any(keyword.arg == "value" for keyword in call.keywords)
    first, third = call.args[0], call.args[2]
    if literals.is_whole(first) or literals.is_whole(third):
        return literals.is_whole(first)
    return None


def _flags(call: ast.Call, _: bool) -> bool:
    lists = [arg for arg in call.args[1:2] if isinstance(arg, (ast.List, ast.Tuple))]
    return any(isinstance(literals.value(flag), bool) for arg in lists for flag in arg.elts)


def _sizes(call: ast.Call, _: bool) -> bool | None:
    args = call.args
    if len(args) < 3 or isinstance(args[1], _LISTS):
        return False
    return True if literals.is_whole(args[1]) and not isinstance(args[2], ast.BinOp) else None


def _likely_sizes(call: ast.Call, _: bool) -> bool:
    height, width = call.args[1:3]
    is_size = literals.is_whole(height) or _is_named(height, "height|^h$|size")
    return is_size and not _is_named(width, "method")


def _svd(call: ast.Call, _: bool) -> bool:
    args = _args(call)
    return len(args) > 2 and literals.value(args[1]) != literals.value(args[2])


def _inputs_first(call: ast.Call, is_0x: bool) -> bool:
    args = _args(call)
    if len(args) < 4 or _is_named(args[2], "label|target"):
        return False
    return is_0x or _is_named(args[3], "label|target")


_SWAPPED = "TensorFlow 2 takes (labels, logits), so it computes with the two swapped; "
_LOGITS = Call(
    "losses",
    CHANGES,
    f"took (logits, labels) by position before 1.0; {_SWAPPED}compat run restores the old order",
    _by_position,
    names=("logits", "labels", "name"),
)
_OF_DIM = _LOGITS._replace(names=("logits", "labels", "dim", "name"))
_BOTH = "compat run accepts both"
_TARGETS = Call(
    "losses", SERVED, f"took targets=, now labels=; {_BOTH}", keywords={"targets": "labels"}
)
_SAMPLED = Call(
    "sampled",
    CHANGES,
    "took (weights, biases, inputs, labels) before 1.0; TensorFlow 2 takes labels before inputs; "
    "compat run decides by types and shapes",
    _inputs_first,
)
_SHAPE = Call(
    "shapes", SERVED, f"took shape=, now dense_shape=; {_BOTH}", keywords={"shape": "dense_shape"}
)

# Names of TensorFlow that are still there.
CALLS: Mapping[str, tuple[Call, ...]] = {
    "SparseTensor": (_SHAPE,),
    "SparseTensorValue": (_SHAPE,),
    "concat": (
        Call(
            "concat",
            SERVED,
            "took (concat_dim, values) before 1.0; compat run accepts both",
            _concat,
            _axis_first,
            ("axis", "values", "name"),
            {"concat_dim": "axis"},
        ),
    ),
    "image.resize_images": (
        Call(
            "sizes",
            SERVED,
            "took height and width before 1.0, now one size; compat run accepts both",
            _sizes,
            _likely_sizes,
            keywords={"new_height": ""},
        ),
    ),
    "losses.mean_squared_error": (
        Call(
            "means",
            CHANGES,
            "returned one mean; in TensorFlow 2 this name is Keras's function, which returns one "
            "mean per row; compat run has the old function",
            _at_least(2),
        ),
    ),
    "nn.dropout": (
        Call(
            "dropout",
            CHANGES,
            "took the probability to keep as its second argument; TensorFlow 2 takes the rate to "
            "drop; compat run keeps the old meaning",
            _at_least(2),
        ),
    ),
    "nn.nce_loss": (_SAMPLED,),
    "nn.sampled_softmax_loss": (_SAMPLED,),
    "nn.sigmoid_cross_entropy_with_logits": (_LOGITS, _TARGETS),
    "nn.softmax_cross_entropy_with_logits": (_OF_DIM,),
    "nn.softmax_cross_entropy_with_logits_v2": (_OF_DIM,),
    "nn.sparse_softmax_cross_entropy_with_logits": (_LOGITS,),
    "nn.weighted_cross_entropy_with_logits": (
        Call(
            "era",
            CHANGES,
            "took (logits, targets) in 0.x and (targets, logits) in 1.x; TensorFlow 2 takes "
            "(labels, logits); run it with compat run --era=0.x or --era=1.x",
            _at_least(2),
            names=("targets", "logits", "pos_weight"),
        ),
        _TARGETS,
    ),
    "reverse": (
        Call(
            "reverse",
            SERVED,
            "took a flag for each dimension before 1.0; compat run accepts both",
            _flags,
            keywords={"dims": ""},
        ),
    ),
    "sparse_split": (
        Call(
            "split",
            SERVED,
            "took (split_dim, num_split, sp_input) before 1.0; compat run accepts both",
            _at_least(2),
            names=("axis", "num_split", "sp_input", "name"),
            keywords={"split_dim": "axis"},
        ),
    ),
    "split": (
        Call(
            "split",
            SERVED,
            "took (split_dim, num_split, value) before 1.0; compat run accepts both",
            _split,
            _axis_first,
            ("axis", "num_or_size_splits", "value", "name"),
            {"split_dim": "axis", "num_split": "num_or_size_splits"},
        ),
    ),
    "svd": (
        Call(
            "era",
            CHANGES,
            "took compute_uv before full_matrices until 0.11; TensorFlow 2 takes them in the other "
            "order; run it with compat run --era=0.x or --era=1.x",
            _svd,
            names=("full_matrices", "compute_uv"),
        ),
    ),
    "train.Supervisor": (
        Call(
            "arguments",
            SERVED,
            "took graph_def=; compat run ignores it",
            keywords={"graph_def": ""},
        ),
    ),
    "train.SyncReplicasOptimizer": (
        Call(
            "arguments",
            SERVED,
            "took replica_id=; compat run ignores it",
            keywords={"replica_id": ""},
        ),
    ),
}
