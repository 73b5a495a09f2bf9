"""An array of one element was a number in formats and for `float()`.

NumPy 2.4: "Raise `TypeError` on attempt to convert array with `ndim > 0` to scalar".
"""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator

from compat.scripts.reading import literals, scopes
from compat.scripts.reading.program import Edit, Program
from compat.scripts.rules.findings import SERVED, Finding
from compat.scripts.rules.rule import Found, Rule, Script

_MADE = ("Variable", "constant")
_SHAPED = ("get_variable", "zeros", "ones", "random_uniform", "random_normal", "truncated_normal")
# Of an array of one element, these make another one.
_KEEP = (
    *("abs", "add", "div", "divide", "exp", "identity", "log", "mul", "multiply", "negative"),
    *("pow", "sigmoid", "square", "squared_difference", "sub", "subtract", "tanh"),
)
_NUMERIC = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[deEfgG]")


def _find(script: Script) -> Iterator[Found]:
    message = "since NumPy 2.4 an array of one element is not a number; compat run takes it"
    for part in script.parts if script.uses else ():
        for node in _operands(part.tree):
            text = literals.dotted(node) or "run"
            finding = Finding("elements", SERVED, text, message, "item", "NumPy 2.4")
            yield Found(part.number, node, text, finding)


def _rewrite(program: Program) -> Iterator[Edit]:
    for node in _operands(program.tree):
        _, end = program.span(node)
        yield Edit(end, end, ".item()")


def _operands(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields what a session returns, as an array of one element, where NumPy wants a number."""
    nodes = [*ast.walk(tree)]
    tensors = _tensors(nodes)
    values = _values(nodes, tensors) if tensors else set()
    for node in nodes if tensors else ():
        operands: list[Any] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            if _NUMERIC.search(literals.text(node.left)):
                operands = getattr(node.right, "elts", [node.right])
        elif isinstance(node, ast.Call) and literals.dotted(node.func) in ("float", "int"):
            operands = node.args[:1]
        for operand in operands:
            if getattr(operand, "id", "") in values or _fetched(operand) in tensors:
                yield operand


def _tensors(nodes: list[Any]) -> set[str]:
    """Returns the names of tensors that have the shape [1], or another of one element."""
    functions = {f.name: f for f in nodes if isinstance(f, ast.FunctionDef)}
    assigned = [
        (node.targets[0].id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]
    found: set[str] = set()
    while True:
        new = {name for name, value in assigned if _is_one(value, found, functions)} - found
        if not new:
            return found
        found |= new


def _is_one(node: Any, known: set[str], functions: dict[str, Any]) -> bool:
    """Whether a tensor is an array of one element, given the names of some that are."""
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.BinOp):
        return any(_is_one(side, known, functions) for side in (node.left, node.right))
    if not isinstance(node, ast.Call):
        return False
    name = literals.dotted(node.func).rpartition(".")[2]
    given = [*node.args, *(word.value for word in node.keywords)]
    if name in _SHAPED and any(_shape(value) for value in given):
        return True
    first = given[0] if given else None
    if name in _MADE:
        elements = getattr(first, "elts", [])
        is_number = len(elements) == 1 and literals.value(elements[0]) is not None
        return is_number or _is_one(first, known, functions)
    if name in functions:
        body = functions[name].body
        last = body[-1] if body else None
        names = [argument.arg for argument in functions[name].args.args]
        ones = {n for n, value in zip(names, node.args) if _is_one(value, known, {})}
        return isinstance(last, ast.Return) and _is_one(last.value, ones, {})
    return name in _KEEP and any(_is_one(value, known, functions) for value in given)


def _shape(node: Any) -> bool:
    """Whether a node is a shape of one element, such as `[1]`."""
    elements = getattr(node, "elts", [])
    return bool(elements) and all(literals.value(element) == 1 for element in elements)


def _fetched(node: Any) -> str:
    """Returns the name of what `session.run(name)` or `name.eval()` returns, or ""."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    is_run = node.func.attr == "run" and node.args
    value = node.args[0] if is_run else node.func.value if node.func.attr == "eval" else None
    return str(getattr(value, "id", ""))


def _values(nodes: list[Any], tensors: set[str]) -> set[str]:
    """Returns the names that sessions return these tensors for, and nothing else is bound to."""
    found: set[str] = set()
    others: set[str] = set()
    for node in [n for n in nodes if isinstance(n, ast.Assign)]:
        target: Any = node.targets[0]
        call: Any = node.value
        left = getattr(target, "elts", [target])
        is_run = isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "run"
        first: Any = call.args[0] if is_run and call.args else None
        fetches = getattr(first, "elts", [])
        names = [getattr(fetch, "id", "") for fetch in fetches] or [_fetched(call)]
        pairs = [*zip(left, names)] if len(left) == len(names) else []
        new = {getattr(name, "id", "") for name, fetch in pairs if fetch in tensors} - {""}
        found |= new
        others |= scopes.bound(node.targets) - new - tensors
    kinds = (ast.AugAssign, ast.For)
    return found - others - scopes.bound(n.target for n in nodes if isinstance(n, kinds))


RULE = Rule(
    "elements",
    "NumPy 2.4",
    "an array of one element was a number in formats and for float()",
    'w = tf.Variable([0.5])\nx = sess.run(w)\nprint("w: %f" % x)',
    'w = tf.Variable([0.5])\nx = sess.run(w)\nprint("w: %f" % x.item())',
    find=_find,
    rewrite=_rewrite,
)
