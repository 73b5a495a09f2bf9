"""Rules for calls whose arguments had another order, or other names, before TensorFlow 1.0.

Most get the names of their arguments, where they are: their order in the text stays. `compat.v1`
takes both orders, so a call that only its values can tell apart runs unchanged.
"""

from __future__ import annotations

import ast
from typing import Callable, Iterator, Union

from compat.scripts.checking import call_rules
from compat.scripts.migrating.program import Edit, GiveUpError, Program, Remark, Rule
from compat.scripts.source import literals

_LISTS = (ast.List, ast.Tuple, ast.ListComp)
# Whether a call has the old order; None if its values tell.
_IsOld = Callable[[ast.Call], Union[bool, None]]


def _calls(program: Program, *names: str) -> Iterator[tuple[str, ast.Call]]:
    for use in program.uses:
        if use.call is not None and use.name in names:
            yield use.name, use.call


def _named(program: Program, call: ast.Call, names: tuple[str, ...]) -> Iterator[Edit]:
    for name, arg in zip(names, call.args):
        if isinstance(arg, (ast.Starred, ast.GeneratorExp)):
            raise GiveUpError(call, "unpacks its arguments")
        start, _ = program.argument(call, arg)
        yield Edit(start, start, name + "=")


def _renamed(program: Program, call: ast.Call, names: dict[str, str]) -> Iterator[Edit]:
    for keyword in call.keywords:
        if keyword.arg in names:
            start, _ = program.argument(call, keyword.value)
            end = len(program.text[:start].rstrip().rstrip("=").rstrip())
            old = end - len(keyword.arg)
            if program.text[old:end] != keyword.arg:
                raise GiveUpError(call, "has a comment between a name and its value")
            yield Edit(old, end, names[keyword.arg])


def _ordered(
    name: str, names: tuple[str, ...], is_old: _IsOld, **keywords: str
) -> Callable[[Program], Iterator[Edit]]:

    def find(program: Program) -> Iterator[Edit]:
        for _, call in _calls(program, name):
            yield from _renamed(program, call, keywords)
            if any(isinstance(arg, ast.Starred) for arg in call.args):
                raise GiveUpError(call, "unpacks its arguments")
            old = is_old(call) if call.args else False
            if old is None:
                raise GiveUpError(call, "has arguments of which only their values tell the order")
            if old:
                yield from _named(program, call, names)

    return find


def _concat(call: ast.Call) -> bool | None:
    first, second = [*call.args, None][:2]
    if isinstance(first, _LISTS) or (second is not None and literals.is_whole(second)):
        return False
    if first is not None and literals.is_whole(first):
        return True
    return False if second is None else (True if isinstance(second, _LISTS) else None)


def _split(call: ast.Call) -> bool | None:
    if len(call.args) < 3:
        is_old = any(keyword.arg == "value" for keyword in call.keywords)
        return is_old and literals.is_whole(call.args[0])
    first, _, third = call.args[:3]
    if literals.is_whole(first) or literals.is_whole(third):
        return literals.is_whole(first)
    return None


_LOSSES = {
    "nn.sigmoid_cross_entropy_with_logits": ("logits", "labels", "name"),
    "nn.softmax_cross_entropy_with_logits": ("logits", "labels", "dim", "name"),
    "nn.softmax_cross_entropy_with_logits_v2": ("logits", "labels", "dim", "name"),
    "nn.sparse_softmax_cross_entropy_with_logits": ("logits", "labels", "name"),
}


def _losses(program: Program) -> Iterator[Edit]:
    for name, call in _calls(program, *_LOSSES):
        yield from _renamed(program, call, {"targets": "labels"})
        if len(call.args) == 1 and literals.is_none(call.args[0]):
            continue  # The sentinel of 1.x.
        yield from _named(program, call, _LOSSES[name])


def _shapes(program: Program) -> Iterator[Edit]:
    for _, call in _calls(program, "SparseTensor", "SparseTensorValue"):
        yield from _renamed(program, call, {"shape": "dense_shape"})


def _sizes(program: Program) -> Iterator[Edit]:
    for _, call in _calls(program, "image.resize_images"):
        args = call.args
        if len(args) < 3 or isinstance(args[1], _LISTS):
            continue
        if not literals.is_whole(args[1]) or isinstance(args[2], ast.BinOp):
            raise GiveUpError(call, "has arguments of which only their values tell the order")
        start, _ = program.argument(call, args[1])
        _, end = program.argument(call, args[2])
        yield Edit(start, start, "[")
        yield Edit(end, end, "]")


def _era(program: Program) -> Iterator[Remark]:
    asked = {"nn.weighted_cross_entropy_with_logits": "targets=, logits=, pos_weight="}
    asked["svd"] = "full_matrices=, compute_uv="
    for name, call in _calls(program, *asked):
        for rule in call_rules.RULES[name][:1]:
            if rule.is_old(call, program.is_0x):
                says = rule.says.split(";")[0]
                yield Remark(call, f"tf.{name} {says}; write the names: {asked[name]}")


RULES = (
    Rule(
        "concat",
        "1.0",
        "tf.concat took the axis first",
        "tf.concat(1, [x, y])",
        "tf.concat(axis=1, values=[x, y])",
        _ordered("concat", ("axis", "values", "name"), _concat, concat_dim="axis"),
        optional=True,
    ),
    Rule(
        "split",
        "1.0",
        "tf.split took the axis first",
        "tf.split(0, 2, x)",
        "tf.split(axis=0, num_or_size_splits=2, value=x)",
        _ordered(
            "split",
            ("axis", "num_or_size_splits", "value", "name"),
            _split,
            split_dim="axis",
            num_split="num_or_size_splits",
        ),
        optional=True,
    ),
    Rule(
        "losses",
        "1.0",
        "losses took logits before labels",
        "tf.nn.softmax_cross_entropy_with_logits(y, y_)",
        "tf.nn.softmax_cross_entropy_with_logits(logits=y, labels=y_)",
        _losses,
        optional=True,
    ),
    Rule(
        "shapes",
        "1.0",
        "sparse tensors took shape=",
        "tf.SparseTensor(indices=x, values=y, shape=z)",
        "tf.SparseTensor(indices=x, values=y, dense_shape=z)",
        _shapes,
        optional=True,
    ),
    Rule(
        "sizes",
        "1.0",
        "images were resized to height and width",
        "tf.image.resize_images(x, 24, 32)",
        "tf.image.resize_images(x, [24, 32])",
        _sizes,
        optional=True,
    ),
    Rule(
        "era",
        "0.x, 1.0",
        "calls whose meaning depends on the age of the script alone are left, with a remark",
        "tf.svd(x, True, False)",
        "# compat 1: tf.svd took compute_uv before full_matrices until 0.11; write the names: "
        "full_matrices=, compute_uv=\n"
        "tf.svd(x, True, False)",
        _era,
    ),
)
