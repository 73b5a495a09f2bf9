"""Builtins that Python 2 had, and a pickle that reads its files.

Python 3.0: "The `cmp()` function should be treated as gone"; its `pickle` takes the strings of
Python 2 for ASCII.
"""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.reading.program import Edit, Program
from compat.scripts.reading.python2 import DECODE, DIVISION, MODULE
from compat.scripts.rules.findings import SERVED, Finding
from compat.scripts.rules.rule import Found, Rule, Script
from compat.scripts.view import python2_builtins

_BUILTINS = {*python2_builtins.BUILTINS} - {DECODE, DIVISION}


def _find(script: Script) -> Iterator[Found]:
    for part in script.parts:
        for name in _names(part.tree) if part.python2 else ():
            message = f"{name.id} is of Python 2; compat run serves it"
            finding = Finding("builtins", SERVED, name.id, message)
            yield Found(part.number, name, name.id, finding)


def _rewrite(program: Program) -> Iterator[Edit]:
    if not program.source.python2:
        return
    for name in _names(program.tree):
        start, _ = program.span(name)
        yield Edit(start, start, f"{MODULE}.")
    for node in program.nodes(ast.Import, ast.ImportFrom):
        is_from = isinstance(node, ast.ImportFrom)
        names = [node.module] if is_from else [alias.name for alias in node.names]
        if "pickle" in names and not getattr(node, "level", 0):
            yield program.import_from_v1(node, "pickle")


def _names(tree: ast.Module) -> Iterator[ast.Name]:
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


RULE = Rule(
    "builtins",
    "Python 3",
    "builtins that Python 2 had, and a pickle that reads its files",
    "import cPickle as pickle\nprint cmp(1, 2)",
    "import compat.v1.packages.pickle as pickle\nprint(python2.cmp(1, 2))",
    find=_find,
    rewrite=_rewrite,
)
