"""Names of a program: which of them statements bind, and which nothing makes."""

from __future__ import annotations

import ast
import builtins
import symtable
from typing import Any, Container, Iterable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that statements bind in their own scope."""
    return {name for node in nodes for name in _bound(node)}


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield (alias.asname or alias.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    if isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields all nodes in some, without those of functions and classes in them."""
    waiting = [*nodes][::-1]  # Not by recursion: a sum of thousands of terms is as deep.
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting += [*ast.iter_child_nodes(node)][::-1]


def parameters(function: Any) -> set[str]:
    """Returns the names of a function's parameters."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def free(name: str, taken: Container[str]) -> str:
    """Returns a name that is not taken: `name`, `name_2` and so on."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def unknown(text: str) -> set[str]:
    """Returns the names that a program uses, and nothing makes where it uses them."""
    top = symtable.symtable(text, "", "exec")
    made = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}

    def used(table: symtable.SymbolTable) -> set[str]:
        inner = set().union(*map(used, table.get_children()))
        return inner | {s.get_name() for s in table.get_symbols() if s.is_global()}

    here = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    return here.union(*map(used, top.get_children())) - made - {*dir(builtins), "__file__"}
