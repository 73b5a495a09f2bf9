"""Reads constants and names in a syntax tree, on every version of Python."""

from __future__ import annotations

import ast
from typing import Any

_CONSTANTS = {"Constant", "NameConstant", "Num", "Str"}  # One class from Python 3.8 on.


def value(node: ast.AST | None) -> Any:
    """Returns the value of a node that is a number, string or bool, else None."""
    node = unwrapped(node)
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if node is None or type(node).__name__ not in _CONSTANTS:
        return None
    constant = ast.literal_eval(node)
    is_number = isinstance(constant, (int, float)) and not isinstance(constant, bool)
    return sign * constant if is_number else constant


def unwrapped(node: Any) -> Any:
    """Returns the expression of an index; until Python 3.8 another node contains it."""
    return node.value if type(node).__name__ == "Index" else node


def is_whole(node: ast.AST) -> bool:
    """Whether a node is a constant integer, not a bool."""
    return type(value(node)) is int


def is_none(node: ast.AST) -> bool:
    """Whether a node is the constant None."""
    return type(node).__name__ in _CONSTANTS and ast.literal_eval(node) is None


def text(node: ast.AST | None) -> str:
    """Returns the string of a constant node, else ""."""
    constant = value(node)
    return constant if isinstance(constant, str) else ""


def dotted(node: ast.AST) -> str:
    """Returns the dotted name of a node, such as "a.b.c"; for `f(x).b.c` only "b.c"."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        words.insert(0, node.id)
    return ".".join(words)


def identifiers(node: ast.AST) -> set[str]:
    """Returns all names and attributes in an expression."""
    children = list(ast.walk(node))
    names = {child.id for child in children if isinstance(child, ast.Name)}
    return names | {child.attr for child in children if isinstance(child, ast.Attribute)}


def flags(call: ast.Call) -> list[str]:
    """Returns the names of the flag that a call defines by any library; [] if it defines none."""
    called = dotted(call.func).rpartition(".")[2]
    is_define = called.startswith("DEFINE_")
    if not (is_define or called in ("add_argument", "add_option", "option")):
        return []
    words = call.args + [k.value for k in call.keywords if k.arg in ("name", "flag_name")]
    names = [name.lstrip("-") for name in map(text, words) if name]
    return names[:1] if is_define else names
