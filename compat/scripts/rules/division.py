"""`/` between integers gave an integer; it is left where one is evidently a float.

Python 3.0: "An expression like `1/2` returns a float. Use `1//2` to get the truncating behavior."
"""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, Program
from compat.scripts.reading.python2 import DIVISION, MODULE, ClassicDivision
from compat.scripts.rules.findings import CHANGES, Finding
from compat.scripts.rules.rule import Found, Rule, Script

_MESSAGE = (
    "/ between integers gives an integer in Python 2, and a float in Python 3; compat run divides "
    "as Python 2"
)
# Functions that always return floats.
_FLOATING = {"float", "float32", "float64", "time", "clock", "sqrt", "log", "exp", "random", "mean"}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Pow)


def _find(script: Script) -> Iterator[Found]:
    for part in script.parts:
        for right in _divisors(part.tree) if part.python2 else ():
            yield Found(part.number, right, "/", Finding("division", CHANGES, "/", _MESSAGE))


def _rewrite(program: Program) -> Iterator[Edit]:
    if not program.source.divides_integers:
        return
    # Of a second tree, whose divisions are calls.
    tree = ClassicDivision().visit(ast.parse(program.text))
    right = {_place(node) for node in _divisors(tree)}
    for node in program.nodes(ast.BinOp, ast.AugAssign):
        if not isinstance(node.op, ast.Div):
            continue
        is_binary = isinstance(node, ast.BinOp)
        left, other = (node.left, node.right) if is_binary else (node.target, node.value)
        if _place(other) not in right:
            continue
        start, end = program.span(node)
        target = program.text[slice(*program.span(left))]
        operator = ", " if is_binary else f" = {MODULE}.divide({target}, "
        yield Edit(*program.between(left, other), operator)
        if is_binary:
            yield Edit(start, start, f"{MODULE}.divide(")
        yield Edit(end, end, ")")


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _divisors(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields the divisors of those calls of `DIVISION` that may be between integers."""
    floats = _floats(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_division(node) and not _is_float(node, floats):
            yield node.args[1]


def _is_division(call: ast.Call) -> bool:
    return literals.dotted(call.func) == DIVISION


def _floats(tree: ast.Module) -> set[str]:
    """Returns the variables that hold only floats, by all assignments to them."""
    values: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
    floats: set[str] = set()
    for _ in range(3):  # A variable may depend on another, and that on a third.
        known = set(floats)
        floats.update(n for n, given in values.items() if all(_is_float(v, known) for v in given))
    return floats


def _is_float(node: ast.AST, floats: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in floats
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return _is_float(node.left, floats) or _is_float(node.right, floats)
    if isinstance(node, ast.Call):
        if _is_division(node):
            return any(_is_float(arg, floats) for arg in node.args)
        return literals.dotted(node.func).rpartition(".")[2] in _FLOATING
    return isinstance(literals.value(node), float)


RULE = Rule(
    "division",
    "Python 3",
    "/ between integers gave an integer; not where one is evidently a float",
    "print 'half:', 7 / 2, 7 / 2.0",
    "print('half:', python2.divide(7, 2), 7 / 2.0)",
    find=_find,
    rewrite=_rewrite,
)
