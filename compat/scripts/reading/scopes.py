"""Finds the names that statements bind, and the values that they assign to them."""

from __future__ import annotations

import ast
from typing import Any, Callable, Iterable, Iterator

from compat.scripts.reading import literals

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def binds(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node itself binds, without those of its children."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield (alias.asname or alias.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that statements bind in their own scope."""
    found: set[str] = set()
    waiting = [*nodes]
    while waiting:  # Not by recursion: a sum of thousands of terms is as deep.
        node = waiting.pop()
        found.update(binds(node))
        if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return found


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields nodes with all nodes in them, without the insides of functions and classes."""
    waiting = [*nodes][::-1]  # Not by recursion: a sum of thousands of terms is as deep.
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting += [*ast.iter_child_nodes(node)][::-1]


def parameters(function: Any) -> set[str]:
    """Returns the names of a function's parameters."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields each target of the assignments among nodes with its value, also of `a, b = 1, 2`."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from zip(target.elts, node.value.elts)


def holding(
    nodes: Iterable[ast.AST],
    holds: Callable[[ast.expr, set[str]], bool],
    every: bool = False,
) -> set[str]:
    """Returns the variables, such as "x" or "self.x", whose values have a property.

    Args:
      nodes: all nodes of a program.
      holds: returns whether a value has the property, given the variables known to have it.
      every: whether all values that are assigned to a variable need the property, or one.
    """
    values: dict[str, list[ast.expr]] = {}
    for target, value in assigned(nodes):
        name = literals.dotted(target)
        if name:
            values.setdefault(name, []).append(value)
    known: set[str] = set()
    enough = all if every else any
    while True:  # A variable may depend on another, and that on a third.
        new = {
            name
            for name, given in values.items()
            if name not in known and enough(holds(value, known) for value in given)
        }
        if not new:
            return known
        known |= new
