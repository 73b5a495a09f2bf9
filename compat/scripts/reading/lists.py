"""Recognizes Python 2 by programs that use results of `map`, `zip`, ... as lists.

In Python 3, `len(map(int, words))` and `zip(a, b)[0]` raise an error.
"""

from __future__ import annotations

import ast
from typing import Any, Container, Iterable, Iterator, Sequence

from compat.scripts.reading import literals, scopes

_LISTS = ("filter", "map", "zip")
# Estimators read these for each graph that they build. The first graph would exhaust an iterator.
_READ_AGAIN = ("dnn_hidden_units", "hidden_units")
_CHANGES = ("append", "extend", "insert", "pop", "remove", "reverse", "sort")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
_SHUFFLES = ("random.shuffle", "np.random.shuffle", "numpy.random.shuffle")


def are_expected(tree: ast.Module, own: Container[str]) -> bool:
    """Whether a program uses the result of `map`, `zip`, `filter` or `range` as a list.

    Args:
      tree: the program.
      own: the names that it binds itself, as in `from past.builtins import map`.
    """
    kinds = [name for name in (*_LISTS, "range") if name not in own]
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.Module, *_SCOPES)):
            nodes = [*scopes.own_nodes(scope.body)]
            given = scopes.parameters(scope) if isinstance(scope, _SCOPES) else set()
            names = {name: kind for name, kind in _assigned(nodes, kinds) if name not in given}
            for node in nodes:
                for value, takes in _taken(node):
                    if _kind(value, names, kinds) in takes:
                        return True
    return False


def _assigned(nodes: Sequence[ast.AST], kinds: Container[str]) -> Iterator[tuple[str, str]]:
    """Yields each name that is bound only once, to the result of a builtin, and the builtin."""
    bound = [name for node in nodes for name in scopes.binds(node)]
    for target, value in scopes.assigned(nodes):
        name, kind = literals.dotted(target), _kind(value, {}, kinds)
        if kind and bound.count(name) == 1:
            yield name, kind


def _taken(node: ast.AST) -> Iterator[tuple[ast.AST, Iterable[str]]]:
    """Yields each expression that a node uses as a list.

    Each expression comes with the builtins whose results do not allow this use in Python 3.
    """
    is_read_again = isinstance(node, ast.keyword) and node.arg in _READ_AGAIN
    if isinstance(node, ast.Subscript) or is_read_again:
        changes = not isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
        yield node.value, (*_LISTS, *["range"] * changes)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Attribute) and node.attr in _CHANGES:
        yield node.value, (*_LISTS, "range")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            is_list = isinstance(other, (ast.List, ast.ListComp)) or _kind(other, {}, ("range",))
            # The sum of a range and an array is an array, in Python 3 as well.
            yield side, (*_LISTS, *["range"] * bool(is_list))
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        called = literals.dotted(node.func)
        if called == "len":
            yield node.args[0], _LISTS
        elif called in _SHUFFLES:
            yield node.args[0], (*_LISTS, "range")


def _kind(value: Any, names: dict[str, str], kinds: Container[str]) -> str:
    """Returns the name of the builtin that computes the value of an expression, or "".

    The expression is a call of a builtin in `kinds`, or a variable in `names`, which maps each
    variable to the builtin that computes its value.
    """
    if isinstance(value, ast.Name):
        return names.get(value.id, "")
    function: Any = getattr(value, "func", None)
    is_builtin = isinstance(function, ast.Name) and function.id in kinds
    return str(function.id) if is_builtin else ""
