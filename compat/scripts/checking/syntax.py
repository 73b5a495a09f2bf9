"""Finds operations of Python 2, and methods that are gone, of which no import tells."""

from __future__ import annotations

import ast
from typing import Any, Iterator

from compat.scripts.checking.findings import CHANGES, SERVED, Finding
from compat.scripts.source import literals, python2_builtins
from compat.scripts.source.python2 import DECODE, DIVISION

_DIVISION = (
    "/ between integers gives an integer in Python 2, and a float in Python 3; compat run divides "
    "as Python 2"
)
# Functions that always return floats.
_FLOATING = {"float", "float32", "float64", "time", "clock", "sqrt", "log", "exp", "random", "mean"}
_BUILTINS = {*python2_builtins.BUILTINS} - {DECODE, DIVISION}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Pow)


def of_python2(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Finding]]:
    """Yields nodes of a rewritten program, the text after (an operator) or at them, and findings.

    Builtins that were converted are not found.
    """
    for right in divisions(tree):
        yield right, "/", Finding("division", CHANGES, "/", _DIVISION)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and literals.dotted(node.func) == DECODE:
            message = "strings had decode() in Python 2; compat run serves it"
            yield node, "decode", Finding("decode", SERVED, "decode", message)
    for name in builtins(tree):
        message = f"{name.id} is of Python 2; compat run serves it"
        yield name, name.id, Finding("builtins", SERVED, name.id, message)


def builtins(tree: ast.Module) -> Iterator[ast.Name]:
    """Yields the names of Python 2's builtins that a program does not bind itself."""
    nodes = list(ast.walk(tree))
    own: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):  # fissix imports some.
            own.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
    wanted = _BUILTINS - own
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in wanted:
            yield node


def tostrings(tree: ast.Module) -> Iterator[ast.Call]:
    """Yields the calls of `array.tostring()`, where the program has no such method itself."""
    nodes: list[Any] = list(ast.walk(tree))
    if any(isinstance(node, ast.FunctionDef) and node.name == "tostring" for node in nodes):
        return
    for node in nodes:
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr == "tostring" and not (node.args or node.keywords):
            yield node


def divisions(tree: ast.Module) -> Iterator[ast.expr]:
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
