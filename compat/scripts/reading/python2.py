"""Rewrites syntax trees so that operations of Python 2 keep their meaning.

Each operation becomes a call of a function in `view/python2_builtins.py`, under a reserved name,
such as `__classic_division__`.
"""

from __future__ import annotations

import ast
import copy

DIVISION = "__classic_division__"
MODULE = "python2"  # Of `compat.v1`, which a migrated program of Python 2 imports.
DECODE = "__classic_decode__"


def _call(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(args), [])


def is_division(node: ast.AST) -> bool:
    """Whether a node is `a / b` or `a /= b`."""
    return isinstance(node, (ast.AugAssign, ast.BinOp)) and isinstance(node.op, ast.Div)


def is_decode(node: ast.AST) -> bool:
    """Whether a node is a call `text.decode(...)`."""
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == "decode"


class ClassicDivision(ast.NodeTransformer):
    """Makes `/` divide as in Python 2: integers give an integer."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not is_division(node):
            return node
        return ast.copy_location(_call(DIVISION, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not is_division(node):
            return node
        value = copy.copy(node.target)
        value.ctx = ast.Load()
        quotient = _call(DIVISION, value, node.value)
        return ast.copy_location(ast.Assign([node.target], quotient), node)


class ClassicStrings(ast.NodeTransformer):
    """Makes `text.decode(...)` work on strings, which were bytes in Python 2."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not is_decode(node):
            return node
        assert isinstance(node.func, ast.Attribute)
        decoded = _call(DECODE, node.func.value, *node.args)
        decoded.keywords = node.keywords
        return ast.copy_location(decoded, node)
