"""Rules for NumPy arrays: arrays of one element that serve as numbers, and `tostring()`.

NumPy 2.4: "Raise `TypeError` on attempt to convert array with `ndim > 0` to scalar"; until then an
array of one element was a number in formats and for `float()`. NumPy 2.3 removed `tostring()`,
which returned the same bytes as `tobytes()`.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator

from compat.scripts.reading import arrays, literals, scopes
from compat.scripts.reading.program import Edit, Program
from compat.scripts.rules.rule import SERVED, Finding, Found, Rule

_MADE = ("Variable", "constant")
_SHAPED = ("get_variable", "zeros", "ones", "random_uniform", "random_normal", "truncated_normal")
# These functions of an array of one element return another one.
_KEEP = (
    *("abs", "add", "div", "divide", "exp", "identity", "log", "mul", "multiply", "negative"),
    *("pow", "sigmoid", "square", "squared_difference", "sub", "subtract", "tanh"),
)
_NUMERIC = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[deEfgG]")
_TOSTRING = "tostring"


def _find_elements(program: Program) -> Iterator[Found]:
    message = "since NumPy 2.4 an array of one element is not a number; compat run takes it"
    for node in _operands(program) if program.uses else ():
        text = literals.dotted(node) or "run"
        yield Found(node, text, Finding("elements", SERVED, text, message, "item", "NumPy 2.4"))


def _rewrite_elements(program: Program) -> Iterator[Edit]:
    for node in _operands(program):
        _, end = program.span(node)
        yield Edit(end, end, ".item()")


def _operands(program: Program) -> Iterator[ast.expr]:
    """Yields the results of sessions that are arrays of one element, where a number is needed."""
    functions = {f.name: f for f in program.nodes(ast.FunctionDef)}
    assignments = program.nodes(ast.Assign)
    tensors = scopes.holding(assignments, lambda value, known: _is_one(value, known, functions))
    if not tensors:
        return
    values = _values(program, tensors)
    operands = arrays.Operands(program.nodes())
    for node in program.nodes(ast.BinOp, ast.Call):
        given: list[Any] = []
        if isinstance(node, ast.Call) and operands.takes_numbers(node.func):
            given = node.args
        elif operands.is_format(node) and _NUMERIC.search(literals.text(node.left)):
            given = getattr(node.right, "elts", [node.right])
        for operand in given:
            if getattr(operand, "id", "") in values or _fetched(operand) in tensors:
                yield operand


def _is_one(node: Any, known: set[str], functions: dict[str, Any]) -> bool:
    """Whether an expression is a tensor of one element, which is an array and not a scalar.

    `known` are variables that hold such tensors; `functions` are those of the program, by name.
    """
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
    """Returns `name` of `session.run(name)` or `name.eval()`, or ""."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    is_run = node.func.attr == "run" and node.args
    value = node.args[0] if is_run else node.func.value if node.func.attr == "eval" else None
    return str(getattr(value, "id", ""))


def _values(program: Program, tensors: set[str]) -> set[str]:
    """Returns the variables that hold only values of `tensors`, as sessions return them."""
    found: set[str] = set()
    others: set[str] = set()
    for node in program.nodes(ast.Assign):
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
    others |= scopes.bound(node.target for node in program.nodes(ast.AugAssign, ast.For))
    return found - others


def _tostring(program: Program) -> Iterator[ast.Call]:
    """Yields the calls of `array.tostring()`, unless the program defines a `tostring` itself."""
    if any(function.name == _TOSTRING for function in program.nodes(ast.FunctionDef)):
        return
    for call in program.nodes(ast.Call):
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr == _TOSTRING
        if is_method and not (call.args or call.keywords):
            yield call


def _find_tostring(program: Program) -> Iterator[Found]:
    message = "tostring() of arrays is gone since NumPy 2.3; compat run serves it"
    finding = Finding(_TOSTRING, SERVED, _TOSTRING, message, "tobytes", "NumPy 2.3")
    for call in _tostring(program) if program.uses else ():
        yield Found(call.func, _TOSTRING, finding)


def _rewrite_tostring(program: Program) -> Iterator[Edit]:
    for call in _tostring(program):
        _, end = program.span(call.func)
        yield Edit(end - len(_TOSTRING), end, "tobytes")


RULES = (
    Rule(
        "tostring",
        "NumPy 2.3",
        "the bytes of an array are tobytes()",
        "x = y.eval().tostring()",
        "x = y.eval().tobytes()",
        find=_find_tostring,
        rewrite=_rewrite_tostring,
    ),
    Rule(
        "elements",
        "NumPy 2.4",
        "an array of one element was a number in formats and for float()",
        'w = tf.Variable([0.5])\nx = sess.run(w)\nprint("w: %f" % x)',
        'w = tf.Variable([0.5])\nx = sess.run(w)\nprint("w: %f" % x.item())',
        find=_find_elements,
        rewrite=_rewrite_elements,
    ),
)
