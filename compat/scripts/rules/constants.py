"""The strings in the text of a script, and the flags that they are defaults of."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.reading import literals


def strings(tree: ast.Module) -> Iterator[tuple[ast.AST, str, str]]:
    """Yields the strings of a program, but docstrings: node, text, and the name of a flag or ""."""
    rest: list[tuple[ast.AST, str]] = [(tree, "")]
    while rest:
        node, flag = rest.pop()
        text = literals.text(node)
        if text:
            yield node, text, flag
        if isinstance(node, ast.Expr) and literals.text(node.value):
            continue  # A docstring.
        if isinstance(node, ast.Call):
            flag = next((name for name in literals.flags(node) if len(name) > 1), flag)
        rest.extend((child, flag) for child in ast.iter_child_nodes(node))
