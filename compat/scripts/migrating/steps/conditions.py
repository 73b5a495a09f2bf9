"""Conditions that known values decide."""

from __future__ import annotations

import ast
from typing import Any, Callable, Mapping, NamedTuple

from compat.scripts.migrating.steps.pieces import Pieces
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import literals


class Beginning(NamedTuple):
    """The value of a text of which only the beginning is known, as of "worker_%d" % index."""

    text: str


def decided(statements: list[Any], values: Mapping[str, Any]) -> list[Any]:
    """Returns statements up to a return, with those of the branches that are taken.

    The values are of names, such as "FLAGS.fake_data"; None is unknown. That of "name is None" says
    whether a name is.
    """
    found: list[Any] = []
    for statement in statements:
        is_taken = truth(statement.test, values) if isinstance(statement, ast.If) else None
        if is_taken is None:
            found.append(statement)
        else:
            found += decided(statement.body if is_taken else statement.orelse, values)
        if found and isinstance(found[-1], ast.Return):
            break
    return found


def settled(
    program: Program, values: Mapping[str, Any], where: Callable[[ast.If], bool] = bool
) -> Program:
    """Returns a program with the branches that are taken, for values as of `decided`."""
    while True:
        for node in program.nodes(ast.If):
            is_taken, alone = truth(node.test, values), Pieces(program).alone(node)
            if is_taken is None or alone is None:
                continue
            if where(node) and _word(program, node) == "if":
                break
        else:
            return program
        indent = program.text[alone[0] : program.span(node)[0]]
        branch = node.body if is_taken else node.orelse
        starts = [program.span(s)[0] for s in branch if _word(program, s) == "elif"]
        lines = Pieces(program).take(
            branch, [Edit(p, p + len("elif"), "if") for p in starts], indent
        )
        parent: Any = program.parents[node]
        bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        is_only = [node] in bodies and not lines
        program = program.after([Edit(*alone, f"{indent}pass\n" if is_only else lines)])


def _word(program: Program, statement: ast.stmt) -> str:
    return program.text[program.span(statement)[0] :].split(None, 1)[0].split("(")[0]


def known(nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of names, for `decided`, that are given constants."""
    found = {name: value_of(node, {}) for name, node in nodes.items()}
    for name, node in nodes.items():
        if found[name] is not None or literals.is_none(node):
            found[f"{name} is None"] = literals.is_none(node)
    return found


def truth(node: ast.AST, values: Mapping[str, Any]) -> bool | None:
    """Returns whether an expression is true, for values as of `decided`, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = truth(node.operand, values)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        found = [truth(value, values) for value in node.values]
        decides = isinstance(node.op, ast.Or)
        if decides in found:
            return decides
        return None if None in found else not decides
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        left, right = (value_of(n, values) for n in (node.left, node.comparators[0]))
        if len(node.ops) > 1 or left is None or right is None:
            return None
        if isinstance(left, Beginning) or isinstance(right, Beginning):
            return isinstance(node.ops[0], ast.NotEq) if _differ(left, right) else None
        return bool((left == right) is isinstance(node.ops[0], ast.Eq))
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        is_none = values.get(f"{literals.dotted(node.left)} is None")
        is_one = len(node.ops) == 1 and literals.is_none(node.comparators[0])
        return (
            is_none is isinstance(node.ops[0], ast.Is) if is_one and is_none is not None else None
        )
    if values.get(f"{literals.dotted(node)} is None"):
        return False
    value = value_of(node, values)
    return None if value is None else bool(value)


def _differ(one: Any, other: Any) -> bool:
    """Whether two values, of which one is a `Beginning`, cannot be equal."""
    texts = [getattr(value, "text", value) for value in (one, other)]
    if not all(isinstance(text, str) for text in texts):
        return False
    is_whole = [isinstance(value, str) for value in (one, other)]
    short = min(map(len, texts))
    return texts[0][:short] != texts[1][:short] or any(
        whole and len(text) < max(map(len, texts)) for whole, text in zip(is_whole, texts)
    )


def value_of(node: ast.AST, values: Mapping[str, Any]) -> Any:
    """Returns what an expression is: a constant, a `Beginning`, or None, which is unknown."""
    known = literals.value(node)
    if known is not None:
        return known
    start = ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)):
        text = literals.text(node.left)
        start = text.partition("%")[0] if isinstance(node.op, ast.Mod) else text
    elif isinstance(node, ast.JoinedStr) and node.values:
        start = literals.text(node.values[0])
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "format":
        start = literals.text(node.func.value).partition("{")[0]  # type: ignore[attr-defined]
    return Beginning(start) if start else values.get(literals.dotted(node))
