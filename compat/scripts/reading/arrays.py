"""Rewrites syntax trees so that operations on arrays keep the meaning they had in old NumPy.

Each becomes a call of a function in `array_builtins`, under a reserved name.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, Iterator

from compat.scripts.reading import literals

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
_CONVERSIONS = ("complex", "float", "int", "long", "round")
_MATH = ("cmath", "math")
_OF_SUMMARY = "simple_value"  # The field of `tf.Summary.Value` for a number.
# Values that are not arrays.
_PLAIN = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.Lambda)


def _call(place: ast.expr, function: str, *args: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(function, ast.Load()), list(args), []), place)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields each target of an assignment with its value, also of `a, b = 1, 2`."""
    for target in node.targets:
        yield target, node.value
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts)


def _may_be_array(node: ast.AST) -> bool:
    return not isinstance(node, _PLAIN) and literals.value(node) is None


def _is_with_whole(node: ast.Compare) -> bool:
    """Whether `x == None`, or `x == "text"`, or the same with `!=`."""
    other = node.comparators[0]
    is_whole = literals.is_none(other) or isinstance(literals.value(other), str)
    is_one = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
    return is_whole and is_one and _may_be_array(node.left)


class ClassicArrays(ast.NodeTransformer):
    """Makes an array of one element serve as a number, and an empty one as false."""

    def __init__(self) -> None:
        self._texts: set[str] = set()  # Variables that hold a string somewhere in the module.
        self._functions = set(_CONVERSIONS)  # Those that take numbers.
        self._modules: set[str] = set()  # Modules of such functions.

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Collects the names first."""
        for child in ast.walk(node):
            if isinstance(child, ast.Import):
                self._modules.update(a.asname or a.name for a in child.names if a.name in _MATH)
            elif isinstance(child, ast.ImportFrom) and child.module in _MATH:
                self._functions.update(a.asname or a.name for a in child.names)
            elif isinstance(child, ast.Assign):
                for target, value in _pairs(child):
                    if _name(target) and self._is_text(value):
                        self._texts.add(_name(target))
            elif isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                self._functions.discard(child.name)
        return self.generic_visit(node)

    def visit_If(self, node: Any) -> ast.AST:
        """NumPy 2.2 refuses to test an empty array."""
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
        """NumPy 2.4 refuses to format an array of one element as a number."""
        is_format = isinstance(node.op, ast.Mod) and self._is_text(node.left)
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
        if isinstance(function, ast.Attribute) and (
            function.attr in METHODS or function.attr in RENAMED
        ):
            name = ast.Constant(function.attr)
            node.func = _call(function, METHOD, function.value, name)
        elif self._takes_numbers(function):
            node.args = [self._number(arg) for arg in node.args]
        elif _name(function) == "map" and node.args and self._takes_numbers(node.args[0]):
            # `map(float, rows)`
            value = _call(node, NUMBER, ast.Name("value", ast.Load()))
            text = ast.parse("lambda value: None", mode="eval").body
            assert isinstance(text, ast.Lambda)
            text.body = ast.Call(node.args[0], [value], [])
            node.args[0] = ast.copy_location(text, node.args[0])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """NumPy 2.4 refuses to assign an array of one element to an element."""
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
        """Returns the value to assign to a target, whose owner is not computed twice."""
        is_plain = bool(_name(target.value)) or (
            isinstance(target.value, ast.Attribute) and bool(_name(target.value.value))
        )
        if not is_plain or isinstance(target.slice, ast.Slice) or not _may_be_array(value):
            return value
        owner = copy.deepcopy(target.value)
        return _call(value, ELEMENT, value, owner)

    def _takes_numbers(self, function: ast.AST) -> bool:
        if isinstance(function, ast.Attribute):
            return _name(function.value) in self._modules
        return _name(function) in self._functions

    def _number(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred) or not _may_be_array(node):
            return node
        return _call(node, NUMBER, node)

    def _is_text(self, node: ast.AST) -> bool:
        """Whether an expression is a string, as far as its own words tell."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod, ast.Mult)):
            return self._is_text(node.left) or self._is_text(node.right)
        is_text = isinstance(literals.value(node), str) or isinstance(node, ast.JoinedStr)
        return is_text or _name(node) in self._texts

    def _test(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            node.values = [self._test(value) for value in node.values]
        elif isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
            return _call(node, TRUTH, node)
        elif isinstance(node, ast.Compare) and _is_with_whole(node):
            # NumPy 1.13 compares the elements; before, an array was no such thing.
            node.left = _call(node.left, WHOLE, node.left, node.comparators[0])
        return node
