"""Strings had `decode()`.

Python 3.0: "As the `str` and `bytes` types cannot be mixed, you must always explicitly convert
between them. Use `str.encode()` to go from `str` to `bytes`, and `bytes.decode()` to go from
`bytes` to `str`."
"""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, Program
from compat.scripts.reading.python2 import DECODE, MODULE
from compat.scripts.rules.findings import SERVED, Finding
from compat.scripts.rules.rule import Found, Rule, Script


def _find(script: Script) -> Iterator[Found]:
    message = "strings had decode() in Python 2; compat run serves it"
    finding = Finding("decode", SERVED, "decode", message)
    for part in script.parts:
        for node in ast.walk(part.tree) if part.python2 else ():
            if isinstance(node, ast.Call) and literals.dotted(node.func) == DECODE:
                yield Found(part.number, node, "decode", finding)


def _rewrite(program: Program) -> Iterator[Edit]:
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


RULE = Rule(
    "decode",
    "Python 3",
    "strings had decode()",
    "print x.decode('utf-8')",
    "print(python2.decode(x, 'utf-8'))",
    find=_find,
    rewrite=_rewrite,
)
