"""What statements evaluate, and when: whether a part of one may be evaluated in front of it."""

from __future__ import annotations

import ast
from typing import Any, Collection, Iterable, Mapping

from compat.scripts.migrating.steps.pieces import used
from compat.scripts.rules.program import Program
from compat.scripts.source import literals

_LOOPS = (ast.For, ast.While)
# What is evaluated later, several times, or perhaps not.
ELSEWHERE = (
    *(ast.Lambda, ast.IfExp, ast.BoolOp),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_CLOSURES = (ast.Lambda, ast.FunctionDef, ast.GeneratorExp)


def may_be_in_front(
    program: Program, call: ast.Call, statement: Any, body: Any, function: Any
) -> bool:
    """Whether a function's body may run before the statement that calls it.

    What the statement evaluates before the call must not depend on it. Operations of TensorFlow do
    not: they have no more than another number. Another method of its object is to be first.
    """
    parts = [getattr(statement, name, None) for name in ("test", "iter")]
    if isinstance(statement, ast.Assign):
        parts.append(statement.value)  # Before its targets.
    header = next((part for part in parts if part and call in ast.walk(part)), statement)
    inside: list[Any] = [*ast.walk(call)]
    outside = [n for n in ast.walk(header) if n not in inside]
    start, _ = program.span(call)
    before = [n for n in outside if _calls(n) and program.span(n)[1] <= start]
    if calls([*before, *inside[1:]], function.methods):
        return False
    uses = any(isinstance(n, ast.Name) and n.id == function.owner for n in outside)
    is_of = function.path.startswith(f"{function.owner}.")
    if uses and (calls(body, function.methods) or not is_of):
        return False
    within = [n for s in body for n in ast.walk(s)] + inside[1:]
    roots = [{_root(n) for n in part if _calls(n)} for part in (before, within)]
    changes = isinstance(statement, ast.AugAssign)
    read = {n.attr for n in outside if isinstance(n, ast.Attribute) and (changes or _loads(n))}
    return not (read & attributes_set(body)) and not all(r - {function.tf} for r in roots)


def calls(nodes: Any, paths: Collection[str]) -> bool:
    """Whether one of these functions is called in some nodes."""
    found: list[Any] = [n for node in nodes for n in ast.walk(node) if _calls(n)]
    return any(literals.dotted(call.func) in paths for call in found)


def touched(statement: ast.AST, tf: str) -> set[str]:
    """Returns names of what a statement may change: elements, what calls are given or methods of.

    "*" is among them if it only calls, for what it does elsewhere.
    """
    made: list[Any] = [n for n in ast.walk(statement) if _calls(n) and _root(n) not in (tf, "")]
    given = [a for call in made for a in [*call.args, *(k.value for k in call.keywords)]]
    sets = [n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and not _loads(n)]
    found = {_root(call) for call in made}.union(*map(parts, sets)) | {
        getattr(node, "id", "") for node in given
    }
    return found | ({"*"} if made and isinstance(statement, ast.Expr) else set())


def parts(node: ast.AST) -> set[str]:
    """Returns the names of which an expression reads attributes or elements."""
    found: list[Any] = [n for n in ast.walk(node) if isinstance(n, (ast.Attribute, ast.Subscript))]
    return {n.id for part in found for n in ast.walk(part) if isinstance(n, ast.Name)}


def is_late(body: Any, names: set[str], statement: Any, parents: Mapping[Any, ast.AST]) -> bool:
    """Whether a loop around a statement may change names before closures in a body read them."""
    while statement in parents and not isinstance(statement, _LOOPS):
        statement = parents[statement]
    inner: list[Any] = [n for s in body for n in ast.walk(s) if isinstance(n, _CLOSURES)]
    return isinstance(statement, _LOOPS) and any(used(n) & names for n in inner)


def may_replace(node: Any, name: str, body: Any, methods: Collection[str]) -> bool:
    """Whether an argument may stand in a function's body where that has the parameter's name."""
    parts = attributes(node)
    if parts & attributes_set(body) or (parts and calls(body, methods)) or name in stored(body):
        return False
    is_list = any(isinstance(n, ast.List) for n in ast.walk(node))
    nodes = [n for s in body for n in ast.walk(s)]
    return is_simple(node) and not (is_list and grows(nodes, name))


def attributes_set(body: Any) -> set[str]:
    """Returns the names of the attributes that statements set, or change elements of."""
    nodes = [n for s in body for n in ast.walk(s)]
    targets = [n.value if isinstance(n, ast.Subscript) else n for n in nodes if not _loads(n)]
    return {n.attr for n in targets if isinstance(n, ast.Attribute)}


def attributes(node: ast.AST | None) -> set[str]:
    """Returns the names of the attributes in an expression."""
    nodes: Iterable[ast.AST] = ast.walk(node) if node is not None else ()
    return {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def grows(nodes: Iterable[Any], name: str) -> bool:
    """Whether what a variable or an attribute holds may change, as of `layers.append(x)`."""
    found: list[Any] = [n.func for n in nodes if _calls(n) and isinstance(n.func, ast.Attribute)]
    found += [n for n in nodes if isinstance(n, ast.Subscript) and not _loads(n)]
    return any(getattr(n.value, "attr", getattr(n.value, "id", "")) == name for n in found)


def stored(body: Any) -> set[str]:
    """Returns the names that statements assign, also in functions inside."""
    nodes = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name)]
    return {n.id for n in nodes if isinstance(n.ctx, ast.Store)}


def is_simple(node: Any) -> bool:
    """Whether an expression may stand wherever its value does."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(map(is_simple, node.elts))
    while isinstance(node, ast.Attribute):
        node = node.value
    is_constant = literals.value(node) is not None or literals.is_none(node)
    return isinstance(node, ast.Name) or (is_constant and not isinstance(node, ast.UnaryOp))


def place(node: Any) -> tuple[int, int]:
    """Returns the line and the column of a node."""
    return node.lineno, node.col_offset


def _loads(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _calls(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _root(call: Any) -> str:
    """Returns the first name of what is called: "tf" of `tf.nn.relu(x)`."""
    return literals.dotted(call.func).partition(".")[0]
