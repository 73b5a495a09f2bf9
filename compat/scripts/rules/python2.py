"""Rules for what Python 3 changed: division, `decode`, and builtins.

Python 3.0: "An expression like `1/2` returns a float. Use `1//2` to get the truncating behavior."
"As the `str` and `bytes` types cannot be mixed, you must always explicitly convert between them."
"The `cmp()` function should be treated as gone". Python 3's `pickle` decodes the strings of
Python 2 as ASCII.
"""

from __future__ import annotations

import ast
from typing import Any, Iterator

from compat.scripts.reading import literals, scopes
from compat.scripts.reading.program import Edit, Program
from compat.scripts.reading.python2 import DECODE, DIVISION, MODULE, is_decode, is_division
from compat.scripts.rules.rule import CHANGES, SERVED, Finding, Found, Rule
from compat.scripts.view import python2_builtins

_DIVIDES = (
    "/ between integers gives an integer in Python 2, and a float in Python 3; compat run divides "
    "as Python 2"
)
# Functions that always return floats.
_FLOATING = {"float", "float32", "float64", "time", "clock", "sqrt", "log", "exp", "random", "mean"}
# Operators whose result is a float if one of their operands is.
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Pow, ast.Div)
_BUILTINS = {*python2_builtins.BUILTINS} - {DECODE, DIVISION}


def _divisions(program: Program) -> Iterator[tuple[Any, Any, Any]]:
    """Yields the divisions that may be between integers, each with its operands."""
    floats = scopes.holding(program.nodes(), _is_float, every=True)
    for node in filter(is_division, program.nodes()):
        is_binary = isinstance(node, ast.BinOp)
        left, right = (node.left, node.right) if is_binary else (node.target, node.value)
        if _is_float(left, floats) or _is_float(right, floats):
            continue
        if program.source(node).divides_integers:
            yield node, left, right


def _is_float(node: ast.AST, floats: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in floats
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return _is_float(node.left, floats) or _is_float(node.right, floats)
    if isinstance(node, ast.Call):
        return literals.dotted(node.func).rpartition(".")[2] in _FLOATING
    return isinstance(literals.value(node), float)


def _find_divisions(program: Program) -> Iterator[Found]:
    for _, _, right in _divisions(program):
        yield Found(right, "/", Finding("division", CHANGES, "/", _DIVIDES))


def _rewrite_divisions(program: Program) -> Iterator[Edit]:
    for node, left, right in _divisions(program):
        start, end = program.span(node)
        target = program.text[slice(*program.span(left))]
        is_binary = isinstance(node, ast.BinOp)
        operator = ", " if is_binary else f" = {MODULE}.divide({target}, "
        yield Edit(*program.between(left, right), operator)
        if is_binary:
            yield Edit(start, start, f"{MODULE}.divide(")
        yield Edit(end, end, ")")


def _decodes(program: Program) -> Iterator[Any]:
    """Yields the calls of `decode` in parts that are written in Python 2."""
    return (node for node in filter(is_decode, program.nodes()) if program.source(node).python2)


def _find_decodes(program: Program) -> Iterator[Found]:
    message = "strings had decode() in Python 2; compat run serves it"
    for call in _decodes(program):
        yield Found(call, "decode", Finding("decode", SERVED, "decode", message))


def _rewrite_decodes(program: Program) -> Iterator[Edit]:
    for call in _decodes(program):
        start, _ = program.span(call)
        _, end = program.span(call.func)
        # The dot follows the owner, which may be in parentheses.
        dot = program.text.rindex(".", start, end)
        opening = program.text.index("(", end)
        yield Edit(start, start, f"{MODULE}.decode(")
        yield Edit(dot, opening + 1, ", " if call.args or call.keywords else "")


def _builtins(program: Program) -> Iterator[ast.Name]:
    """Yields the names of Python 2's builtins that a program does not bind itself."""
    if not program.python2:
        return
    own = {name for node in program.nodes() for name in scopes.binds(node)}  # fissix imports some.
    for name in program.nodes(ast.Name):
        if name.id in _BUILTINS - own and program.source(name).python2:
            yield name


def _find_builtins(program: Program) -> Iterator[Found]:
    for name in _builtins(program):
        message = f"{name.id} is of Python 2; compat run serves it"
        yield Found(name, name.id, Finding("builtins", SERVED, name.id, message))


def _rewrite_builtins(program: Program) -> Iterator[Edit]:
    for name in _builtins(program):
        start, _ = program.span(name)
        yield Edit(start, start, f"{MODULE}.")
    for node in program.nodes(ast.Import, ast.ImportFrom) if program.python2 else ():
        is_from = isinstance(node, ast.ImportFrom)
        names = [node.module] if is_from else [alias.name for alias in node.names]
        if "pickle" in names and not getattr(node, "level", 0):
            yield program.import_from_v1(node, "pickle")


RULES = (
    Rule(
        "division",
        "Python 3",
        "/ between integers gave an integer; not where one is evidently a float",
        "print 'half:', 7 / 2, 7 / 2.0",
        "print('half:', python2.divide(7, 2), 7 / 2.0)",
        find=_find_divisions,
        rewrite=_rewrite_divisions,
    ),
    Rule(
        "decode",
        "Python 3",
        "strings had decode()",
        "print x.decode('utf-8')",
        "print(python2.decode(x, 'utf-8'))",
        find=_find_decodes,
        rewrite=_rewrite_decodes,
    ),
    Rule(
        "builtins",
        "Python 3",
        "builtins that Python 2 had, and a pickle that reads its files",
        "import cPickle as pickle\nprint cmp(1, 2)",
        "import compat.v1.packages.pickle as pickle\nprint(python2.cmp(1, 2))",
        find=_find_builtins,
        rewrite=_rewrite_builtins,
    ),
)
