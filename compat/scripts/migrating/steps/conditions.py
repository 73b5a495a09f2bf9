"""Conditions that known values decide."""

from __future__ import annotations

import ast
from typing import Any, Mapping

from compat.scripts.source import literals


def decided(statements: list[Any], values: Mapping[str, Any]) -> list[Any]:
    """Returns statements up to a return, with those of the branches that are taken.

    The values are of names, such as "FLAGS.fake_data"; None is unknown.
    """
    found: list[Any] = []
    for statement in statements:
        truth = _truth(statement.test, values) if isinstance(statement, ast.If) else None
        if truth is None:
            found.append(statement)
        else:
            found += decided(statement.body if truth else statement.orelse, values)
        if found and isinstance(found[-1], ast.Return):
            break
    return found


def _truth(node: ast.AST, values: Mapping[str, Any]) -> bool | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        truth = _truth(node.operand, values)
        return None if truth is None else not truth
    if isinstance(node, ast.BoolOp):
        found = [_truth(value, values) for value in node.values]
        decides = isinstance(node.op, ast.Or)
        if decides in found:
            return decides
        return None if None in found else not decides
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        left, right = (_value(n, values) for n in (node.left, node.comparators[0]))
        if len(node.ops) > 1 or left is None or right is None:
            return None
        return bool((left == right) is isinstance(node.ops[0], ast.Eq))
    value = _value(node, values)
    return None if value is None else bool(value)


def _value(node: ast.AST, values: Mapping[str, Any]) -> Any:
    known = literals.value(node)
    return values.get(literals.dotted(node)) if known is None else known
