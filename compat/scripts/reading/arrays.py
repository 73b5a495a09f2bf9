"""Rewrites syntax trees so that operations on arrays keep the meaning that they had in old NumPy.

Each operation becomes a call of a function in `view/array_builtins.py`, under a reserved name, such
as `__classic_number__`.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, Sequence

from compat.scripts.reading import literals, scopes

ELEMENT = "__classic_element__"
FORMAT = "__classic_format__"
METHOD = "__classic_method__"
NUMBER = "__classic_number__"
TRUTH = "__classic_truth__"
WHOLE = "__classic_whole__"
# Methods that NumPy 2 removed from arrays, and Python 3.9 and 3.12 from other classes.
METHODS = ("getchildren", "itemset", "newbyteorder", "ptp", "tostring")
RENAMED = {
    "assertEquals": "assertEqual",
    "assertItemsEqual": "assertCountEqual",
    "assertNotEquals": "assertNotEqual",
    "getiterator": "iter",
    "isAlive": "is_alive",
    "tostring": "tobytes",
}
_OLD_METHODS = {*METHODS, *RENAMED}
_CONVERSIONS = ("complex", "float", "int", "long", "round")
_MATH = ("cmath", "math")
_OF_SUMMARY = "simple_value"  # The field of `tf.Summary.Value` for a number.
# Values that are not arrays.
_PLAIN = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.Lambda)


def _call(place: ast.expr, function: str, *args: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(function, ast.Load()), list(args), []), place)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _may_be_array(node: ast.AST) -> bool:
    return not isinstance(node, _PLAIN) and literals.value(node) is None


def _is_with_whole(node: ast.Compare) -> bool:
    """Whether a comparison is `x == None` or `x == "text"`, or one of these with `!=`."""
    other = node.comparators[0]
    is_whole = literals.is_none(other) or isinstance(literals.value(other), str)
    is_one = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
    return is_whole and is_one and _may_be_array(node.left)


class Operands:
    """Recognizes where a program needs numbers: in formats, and in calls such as `float(x)`.

    Args:
      nodes: all nodes of the program.
    """

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._functions = set(_CONVERSIONS)  # Functions that take numbers.
        self._modules: set[str] = set()  # Modules with such functions.
        for node in nodes:
            if isinstance(node, ast.Import):
                self._modules.update(a.asname or a.name for a in node.names if a.name in _MATH)
            elif isinstance(node, ast.ImportFrom) and node.module in _MATH:
                self._functions.update(a.asname or a.name for a in node.names)
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self._functions.discard(node.name)
        # Variables that hold a string somewhere in the program.
        self._texts = scopes.holding(nodes, _is_text)

    def is_format(self, node: ast.AST) -> bool:
        """Whether a node is `text % values`."""
        is_remainder = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
        return is_remainder and _is_text(node.left, self._texts)  # type: ignore[attr-defined]

    def takes_numbers(self, function: ast.AST) -> bool:
        """Whether a function takes numbers, as `float` and `math.sqrt` do."""
        if isinstance(function, ast.Attribute):
            return _name(function.value) in self._modules
        return _name(function) in self._functions


def _is_text(node: ast.AST, texts: set[str]) -> bool:
    """Whether an expression is a string; `texts` are the variables that hold strings."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod, ast.Mult)):
        return _is_text(node.left, texts) or _is_text(node.right, texts)
    is_text = isinstance(literals.value(node), str) or isinstance(node, ast.JoinedStr)
    return is_text or _name(node) in texts


class ClassicArrays(ast.NodeTransformer):
    """Makes an array of one element serve as a number, and an empty one as false."""

    _operands = Operands(())

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Finds the functions that take numbers, and the variables that hold strings, first."""
        self._operands = Operands([*ast.walk(node)])
        return self.generic_visit(node)

    def visit_If(self, node: Any) -> ast.AST:
        """Makes an empty array false in a condition, where NumPy 2.2 raises an error."""
        self.generic_visit(node)
        node.test = self._test(node.test)
        return node

    visit_While = visit_IfExp = visit_Assert = visit_If

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = self._test(node.operand)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Rewrites `text % values` to format an array of one element as a number.

        NumPy 2.4 raises an error there.
        """
        is_format = self._operands.is_format(node)
        self.generic_visit(node)
        if not is_format or literals.value(node.right) is not None:
            return node
        return _call(node, FORMAT, node.left, node.right)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        for keyword in node.keywords:
            if keyword.arg == _OF_SUMMARY:
                keyword.value = self._number(keyword.value)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _OLD_METHODS:
            name = ast.Constant(function.attr)
            node.func = _call(function, METHOD, function.value, name)
        elif self._operands.takes_numbers(function):
            node.args = [self._number(arg) for arg in node.args]
        elif _name(function) == "map" and node.args and self._operands.takes_numbers(node.args[0]):
            # `map(float, rows)`
            value = _call(node, NUMBER, ast.Name("value", ast.Load()))
            text = ast.parse("lambda value: None", mode="eval").body
            assert isinstance(text, ast.Lambda)
            text.body = ast.Call(node.args[0], [value], [])
            node.args[0] = ast.copy_location(text, node.args[0])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Assigns an array of one element to an element, where NumPy 2.4 raises an error."""
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript):
            node.value = self._element(target, node.value)
        elif isinstance(target, ast.Attribute) and target.attr == _OF_SUMMARY:
            node.value = self._number(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.target, ast.Subscript):
            node.value = self._element(node.target, node.value)
        return node

    def _element(self, target: ast.Subscript, value: ast.expr) -> ast.expr:
        """Returns the value to assign to an element `target` of an array.

        The value is a call with the array and `value`. An array that is not a name or an attribute
        would be computed twice, so for such an array `value` itself is returned.
        """
        is_plain = bool(_name(target.value)) or (
            isinstance(target.value, ast.Attribute) and bool(_name(target.value.value))
        )
        if not is_plain or isinstance(target.slice, ast.Slice) or not _may_be_array(value):
            return value
        owner = copy.deepcopy(target.value)
        return _call(value, ELEMENT, value, owner)

    def _number(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred) or not _may_be_array(node):
            return node
        return _call(node, NUMBER, node)

    def _test(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            node.values = [self._test(value) for value in node.values]
        elif isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
            return _call(node, TRUTH, node)
        elif isinstance(node, ast.Compare) and _is_with_whole(node):
            # Since NumPy 1.13 this compares the elements; before, an array was never equal to None
            # or to a string.
            node.left = _call(node.left, WHOLE, node.left, node.comparators[0])
        return node
