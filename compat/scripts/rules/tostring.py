"""The bytes of an array are `tobytes()`.

NumPy 2.3 removed `tostring()`, which returned the same bytes under a name that says otherwise.
"""

from __future__ import annotations

import ast
from typing import Any, Iterator

from compat.scripts.reading.program import Edit, Program
from compat.scripts.rules.findings import SERVED, Finding
from compat.scripts.rules.rule import Found, Rule, Script

_GONE = "tostring"


def _find(script: Script) -> Iterator[Found]:
    message = "tostring() of arrays is gone since NumPy 2.3; compat run serves it"
    finding = Finding(_GONE, SERVED, _GONE, message, "tobytes", "NumPy 2.3")
    for part in script.parts if script.uses else ():
        for call in _calls(part.tree):
            yield Found(part.number, call.func, _GONE, finding)


def _rewrite(program: Program) -> Iterator[Edit]:
    for call in _calls(program.tree):
        _, end = program.span(call.func)
        yield Edit(end - len(_GONE), end, "tobytes")


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yields the calls of `array.tostring()`, where the program has no such method itself."""
    nodes: list[Any] = list(ast.walk(tree))
    if any(isinstance(node, ast.FunctionDef) and node.name == _GONE for node in nodes):
        return
    for node in nodes:
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr == _GONE and not (node.args or node.keywords):
            yield node


RULE = Rule(
    _GONE,
    "NumPy 2.3",
    "the bytes of an array are tobytes()",
    "x = y.eval().tostring()",
    "x = y.eval().tobytes()",
    find=_find,
    rewrite=_rewrite,
)
