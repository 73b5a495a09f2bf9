"""Functions that train, feed or read, written where a program calls them."""

from __future__ import annotations

import ast
from typing import Any, Callable

from compat.scripts.migrating import definitions
from compat.scripts.migrating.steps import inlining, plain
from compat.scripts.migrating.steps.inlining import Function
from compat.scripts.migrating.steps.kinds import TRAINS, Kinds, last
from compat.scripts.migrating.steps.pieces import changed
from compat.scripts.rules.program import Program
from compat.scripts.source import literals, scopes


def inlined(program: Program, tf: str) -> Program:
    """Returns a program that trains, feeds and reads by itself."""
    return inlining.inlined(program, tf, _wanted)


def _wanted(program: Program, function: Function) -> bool:
    kinds = Kinds(program, function.tf)
    calls = [node for node in ast.walk(function.node) if isinstance(node, ast.Call)]
    if any(kinds.is_input(node) or last(node) in TRAINS for node in calls):
        return plain.is_part(program, function, kinds)
    return is_work(kinds, function.node) and not any(last(node) == "run" for node in calls)


def is_work(kinds: Kinds, node: ast.AST) -> bool:
    """Whether a definition trains, feeds, reads or runs."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    reads = any(last(n) == "next_batch" and isinstance(n.func, ast.Attribute) for n in calls)
    trains = any(last(n) in TRAINS for n in calls)
    is_function = isinstance(node, ast.FunctionDef)
    return definitions.feeds_or_runs(kinds, node) or (is_function and (reads or trains))


def early(statements: list[Any], runs: Callable[[Any], bool]) -> list[Any]:
    """Returns the statements of a module that are in front of what runs a session."""
    straight = (s for s in statements if not isinstance(s, (ast.FunctionDef, ast.ClassDef)))
    first = next(filter(runs, straight), None)
    return statements[: statements.index(first)] if first else statements


def made(statement: ast.stmt, is_early: bool) -> set[str]:
    """Returns the names of a module that a statement of it makes, or whose values it changes.

    Loops and the like prepare data where they are `is_early`, before the session runs.
    """
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AugAssign)):
        return scopes.bound([statement])
    entered = [getattr(i.context_expr, "func", None) for i in getattr(statement, "items", [])]
    opens = [literals.dotted(func) for func in entered if func is not None] == ["open"]
    prepares = opens or isinstance(statement, (ast.Expr, ast.For, ast.If, ast.While))
    return changed(statement) if prepares and is_early else set()
