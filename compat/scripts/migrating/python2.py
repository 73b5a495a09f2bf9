"""Rules for what a script of Python 2 means, once its syntax is that of Python 3."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.checking import division
from compat.scripts.migrating.program import Edit, Program, Rule
from compat.scripts.source import python2_builtins, rewriting

MODULE = "python2"  # Of compat.v1; a program of Python 2 imports it.


def _division(program: Program) -> Iterator[Edit]:
    if not program.source.divides_integers:
        return
    # Of a second tree, whose divisions are calls.
    tree = rewriting.ClassicDivision().visit(ast.parse(program.text))
    right = {_place(node) for node in division.find(tree)}
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
    names = program.nodes(ast.Name)
    # fissix has converted some already, and imports others.
    imports = program.nodes(ast.Import, ast.ImportFrom)
    own = {alias.asname or alias.name for node in imports for alias in node.names}
    own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    own |= {node.name for node in program.nodes(ast.FunctionDef, ast.ClassDef)}
    own |= {node.arg for node in program.nodes(ast.arg)}
    for node in names:
        if node.id in python2_builtins.BUILTINS and node.id not in own:
            start, _ = program.span(node)
            yield Edit(start, start, f"{MODULE}.")
    for node in program.nodes(ast.Import, ast.ImportFrom):
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
        _division,
    ),
    Rule(
        "decode",
        "Python 3",
        "strings had decode()",
        "print x.decode('utf-8')",
        "print(python2.decode(x, 'utf-8'))",
        _decode,
    ),
    Rule(
        "builtins",
        "Python 3",
        "builtins that Python 2 had, and a pickle that reads its files",
        "import cPickle as pickle\nprint cmp(1, 2)",
        "import compat.v1.packages.pickle as pickle\nprint(python2.cmp(1, 2))",
        _builtins,
    ),
)
