"""Decorators of properties that a class makes once, as `lazy_property` and `define_scope`."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from compat.scripts.migrating.steps.pieces import Pieces, spelled, used
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import literals, scopes

_IMPORTS = (ast.Import, ast.ImportFrom)


class Decorator(NamedTuple):
    """A decorator of properties that store what they return, as `lazy_property`."""

    node: Any  # Its definition.
    prefix: str  # Of the attributes in which they do.
    scope: Any  # What makes the scope in which they are made, as `tf.variable_scope`, or None.
    parameter: str  # That which may give it a name, or "".


def is_decorator(node: ast.AST) -> bool:
    """Whether a function is a decorator of such properties, or one of such a decorator."""
    return isinstance(node, ast.FunctionDef) and (decorator(node) is not None or doubles(node))


def decorator(function: Any) -> Decorator | None:
    """Returns what a function is as a decorator of properties that store what they return."""
    body, words = _body(function), [a.arg for a in function.args.args]
    if not (words and len(body) in (3, 4) and isinstance(body[-2], ast.FunctionDef)):
        return None
    made, inner, own = body[0], body[-2], f"{words[0]}.__name__"
    steps, (me, *more) = _body(inner), [*(a.arg for a in inner.args.args), "", ""][:2]
    is_plain = len(steps) == 2 and isinstance(steps[0], ast.If) and not (more[0] or steps[0].orelse)
    if not (is_plain and isinstance(made, ast.Assign) and isinstance(made.value, ast.BinOp)):
        return None
    name, prefix = literals.dotted(made.targets[0]), literals.text(made.value.left)
    inside, scope, named = steps[0].body, None, ""
    if isinstance(inside[0], ast.With):
        call: Any = inside[0].items[0].context_expr
        inside, scope = inside[0].body, getattr(call, "func", None)
        named = literals.dotted(body[1].targets[0]) if isinstance(body[1], ast.Assign) else ""
        stars = [("*", function.args.vararg), ("**", function.args.kwarg)]
        rest = "".join(f", {star}{argument.arg}" for star, argument in stars if argument)
        made_in = f"{literals.dotted(scope)}({named or own}{rest})" if scope else "?"
        is_plain = scope is not None and _same(call, made_in)
    if len(body) == 4:
        is_plain = is_plain and _same(body[1], f"{named} = {[*words, ''][1]} or {own}")
    kinds = [literals.dotted(getattr(n, "func", n)) for n in inner.decorator_list]
    is_once = (
        is_plain
        and {k.rpartition(".")[2] for k in kinds} in ({"property"}, {"property", "wraps"})
        and _same(made, f"{name} = {prefix!r} + {own}")
        and _same(steps[0].test, f"not hasattr({me}, {name})")
        and len(inside) == 1
        and _same(inside[0], f"setattr({me}, {name}, {words[0]}({me}))")
        and _same(steps[1], f"return getattr({me}, {name})")
        and _same(body[-1], f"return {inner.name}")
    )
    return Decorator(function, prefix, scope, words[1] if named else "") if is_once else None


def doubles(function: Any) -> bool:
    """Whether a function is a decorator of a decorator, which may then be given arguments."""
    body = _body(function)
    inner: Any = body[0]
    if not isinstance(inner, ast.FunctionDef) or not (inner.args.vararg and inner.args.kwarg):
        return False
    words, given = inner.args.vararg.arg, inner.args.kwarg.arg
    name = [*(a.arg for a in function.args.args), ""][0]
    step: Any = _body(inner)[0]
    late = getattr(step, "orelse", None) or _body(inner)[1:]
    made = [a.arg for n in ast.walk(inner) if isinstance(n, ast.Lambda) for a in n.args.args]
    return (
        isinstance(step, ast.If)
        and _same(step.test, f"len({words}) == 1 and len({given}) == 0 and callable({words}[0])")
        and _same([*step.body, None][0], f"return {name}({words}[0])")
        and len(made) == len(late) == 1
        and _same(late[0], f"return lambda {made[0]}: {name}({made[0]}, *{words}, **{given})")
        and _same(body[-1], f"return {inner.name}")
    )


def _body(function: Any) -> list[Any]:
    """Returns the statements of a function without its docstring."""
    return function.body[int(ast.get_docstring(function) is not None) :] or function.body


def _same(node: Any, text: str) -> bool:
    """Whether a statement or an expression is what a text says."""
    try:
        made: Any = ast.parse(text).body[0]
    except SyntaxError:
        return False
    nodes = [made, *([made.value] if isinstance(made, ast.Expr) else [])]
    return isinstance(node, ast.AST) and ast.dump(node) in map(ast.dump, nodes)


def without_unused(program: Program) -> Program:
    """Returns a program without such decorators that it does not use, and what they import."""
    for node in filter(is_decorator, program.tree.body):
        inside = {*ast.walk(node)}
        uses = scopes.uses(program.tree, {node.name})  # type: ignore[attr-defined]
        if not {*uses} - inside:
            program = program.after([Pieces(program).removed(node)])
            for name in sorted(used(node) & scopes.bound(program.nodes(*_IMPORTS))):
                program = program.after(_import_removed(program, name))
            return without_unused(program)
    return program


def _import_removed(program: Program, name: str) -> list[Edit]:
    """Returns the edits that remove the import of a name, if it is not used any longer."""
    if scopes.uses(program.tree, {name}):
        return []
    for node in program.tree.body:
        if isinstance(node, _IMPORTS) and name in scopes.bound([node]):
            left = [a for a in node.names if (a.asname or a.name.partition(".")[0]) != name]
            return [Pieces(program).importing(node, [*map(spelled, left)])]
    return []
