"""Rules for calls whose arguments had another order, or other names, before TensorFlow 1.0.

Most get the names of their arguments, where they are: their order in the text stays. `compat.v1`
takes both orders, so a call that only its values can tell apart runs unchanged.
"""

from __future__ import annotations

import ast
from typing import Callable, Iterator, Mapping

from compat.scripts.checking import call_rules
from compat.scripts.checking.call_rules import Call
from compat.scripts.migrating.program import Edit, Finders, GiveUpError, Program, Remark


def _calls(program: Program, rule: str) -> Iterator[tuple[str, ast.Call, Call]]:
    for use in program.uses:
        for known in call_rules.of_name(use.name):
            if use.call is not None and known.rule == rule:
                yield use.name, use.call, known


def _named(program: Program, call: ast.Call, names: tuple[str, ...]) -> Iterator[Edit]:
    for name, arg in zip(names, call.args):
        if isinstance(arg, (ast.Starred, ast.GeneratorExp)):
            raise GiveUpError(call, "unpacks its arguments")
        start, _ = program.argument(call, arg)
        yield Edit(start, start, name + "=")


def _renamed(program: Program, call: ast.Call, names: Mapping[str, str]) -> Iterator[Edit]:
    for keyword in call.keywords:
        new = names.get(keyword.arg or "")
        if keyword.arg and new:
            start, _ = program.argument(call, keyword.value)
            end = len(program.text[:start].rstrip().rstrip("=").rstrip())
            old = end - len(keyword.arg)
            if program.text[old:end] != keyword.arg:
                raise GiveUpError(call, "has a comment between a name and its value")
            yield Edit(old, end, new)


def _is_old(program: Program, call: ast.Call, known: Call) -> bool:
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        raise GiveUpError(call, "unpacks its arguments")
    is_old = bool(call.args) and known.is_old(call, program.is_0x)
    if is_old is None:
        raise GiveUpError(call, "has arguments of which only their values tell the order")
    return is_old


def _ordered(rule: str) -> Callable[[Program], Iterator[Edit]]:

    def find(program: Program) -> Iterator[Edit]:
        for _, call, known in _calls(program, rule):
            yield from _renamed(program, call, known.keywords)
            if known.names and _is_old(program, call, known):
                yield from _named(program, call, known.names)

    return find


def _sizes(program: Program) -> Iterator[Edit]:
    for _, call, known in _calls(program, "sizes"):
        if _is_old(program, call, known):
            start, _ = program.argument(call, call.args[1])
            _, end = program.argument(call, call.args[2])
            yield Edit(start, start, "[")
            yield Edit(end, end, "]")


def _era(program: Program) -> Iterator[Remark]:
    for name, call, known in _calls(program, "era"):
        if call_rules.is_found(known, call, program.is_0x):
            says, asked = known.says.split(";")[0], "=, ".join(known.names)
            yield Remark(call, f"tf.{name} {says}; write the names: {asked}=")


FINDERS: Finders = {
    "concat": _ordered("concat"),
    "split": _ordered("split"),
    "losses": _ordered("losses"),
    "shapes": _ordered("shapes"),
    "sizes": _sizes,
    "era": _era,
}
