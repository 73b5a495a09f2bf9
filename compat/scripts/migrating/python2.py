"""Rules for what a script of Python 2 means, once its syntax is that of Python 3."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.checking import syntax
from compat.scripts.migrating.program import Edit, Finders, Program
from compat.scripts.source.python2 import ClassicDivision

MODULE = "python2"  # Of compat.v1; a program of Python 2 imports it.


def _division(program: Program) -> Iterator[Edit]:
    if not program.source.divides_integers:
        return
    # Of a second tree, whose divisions are calls.
    tree = ClassicDivision().visit(ast.parse(program.text))
    right = {_place(node) for node in syntax.divisions(tree)}
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


def _decode(program: Program) -> Iterator[Edit]:
    if not program.source.python2:
        return
    for call in program.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "decode":
            continue
        start, _ = program.span(call)
        _, end = program.span(call.func)
        # From the end of the owner, which may be in parentheses.
        dot = program.text.rindex(".", start, end)
        opening = program.text.index("(", end)
        yield Edit(start, start, f"{MODULE}.decode(")
        yield Edit(dot, opening + 1, ", " if call.args or call.keywords else "")


def _builtins(program: Program) -> Iterator[Edit]:
    if not program.source.python2:
        return
    for name in syntax.builtins(program.tree):
        start, _ = program.span(name)
        yield Edit(start, start, f"{MODULE}.")
    for node in program.nodes(ast.Import, ast.ImportFrom):
        is_from = isinstance(node, ast.ImportFrom)
        names = [node.module] if is_from else [alias.name for alias in node.names]
        if "pickle" in names and not getattr(node, "level", 0):
            yield program.import_from_v1(node, "pickle")


FINDERS: Finders = {
    "division": _division,
    "decode": _decode,
    "builtins": _builtins,
}
