"""Finds integer divisions in Python 2 code."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.source import literals
from compat.scripts.source.rewriting import DIVISION

MESSAGE = (
    "/ between integers gives an integer in Python 2, and a float in Python 3; compat run divides "
    "as Python 2"
)
# Functions that always return floats.
_FLOATING = {"float", "float32", "float64", "time", "clock", "sqrt", "log", "exp", "random", "mean"}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Pow)


def find(tree: ast.Module) -> Iterator[ast.expr]:
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
