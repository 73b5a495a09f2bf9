"""Rewrites syntax trees so that a change of a column changes its frame, a pandas DataFrame.

Since pandas 3 `frame["a"][rows] = 0` and `frame["a"].fillna(0, inplace=True)` change a copy, and
`frame.values` cannot be written to. The rewritten operations change the frame, or a copy of the
values that can be written to.
"""

from __future__ import annotations

import ast
from typing import Any, Iterator

from compat.scripts.reading import literals

COLUMN = "__classic_column__"
VALUES = "__classic_values__"


def is_in_place(call: ast.Call) -> bool:
    """Whether a call has `inplace=True`."""
    return any(
        word.arg == "inplace" and literals.value(word.value) is True for word in call.keywords
    )


def changed(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    """Yields each expression that changes an object in place, and the expression of the object.

    The first is a target `column[rows]` of an assignment, or a method called with `inplace=True`.
    """
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                yield target, target.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_in_place(node):
        yield node.func, node.func.value


class ClassicFrames(ast.NodeTransformer):
    """Makes chained changes of columns, and changes of `frame.values`, work as before pandas 3."""

    def visit(self, node: ast.AST) -> Any:
        """Wraps each column that a node changes, so that its frame changes as well."""
        is_call = isinstance(node, ast.Call)
        if is_call:
            self.generic_visit(node)
        for place, column in changed(node):
            place.value = self._column(column)
        return node if is_call else super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr != "values" or not isinstance(node.ctx, ast.Load):
            return node
        values = ast.Call(ast.Name(VALUES, ast.Load()), [node], [])
        return ast.copy_location(values, node)

    def _column(self, node: ast.expr) -> ast.expr:
        """Returns a call that gets the column `node` so that changing it changes its frame as well.

        `node` is the object that an operation changes; if it is not a column, `node` is returned.
        """
        if isinstance(node, ast.Attribute):
            if node.attr.startswith("__"):  # A private name, which Python changes in a class.
                return node
            owner = self._column(node.value) if node.attr == "values" else node.value
            args = [owner, ast.Constant(node.attr), ast.Constant(True)]
        elif isinstance(node, ast.Subscript):
            key = literals.unwrapped(node.slice)
            if type(key).__name__ in ("ExtSlice", "Slice", "Tuple"):
                return node  # This key selects no column.
            args = [node.value, key]
        else:
            return node
        return ast.copy_location(ast.Call(ast.Name(COLUMN, ast.Load()), args, []), node)
