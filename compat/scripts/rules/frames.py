"""A rule for in-place operations on a column of a DataFrame, which no longer change the frame.

pandas 3.0: "Chained assignment never works": the operations change a copy of the column.
"""

from __future__ import annotations

import ast
import json
from typing import Any, Iterator, NamedTuple

from compat.scripts.reading import literals, scopes
from compat.scripts.reading.frames import changed
from compat.scripts.reading.program import Edit, Program, Remark
from compat.scripts.rules.rule import CHANGES, Finding, Found, Rule

_PANDAS = ("pandas", "compat.v1.packages.pandas")
_METHODS = {"bfill", "clip", "ffill", "fillna", "interpolate", "mask", "replace", "where"}
# An object with one of these attributes is a frame.
_OF_FRAMES = {"dropna", "groupby", "iloc", "iterrows", "ix", "loc", "select_dtypes"}
_NO_COLUMNS = {*_OF_FRAMES, "T", "at", "columns", "dtypes", "iat", "index", "values"}


class _Change(NamedTuple):
    """An operation in place on a column: a call of a method, or an assignment to rows."""

    node: Any  # The call, or the target of the assignment.
    column: Any  # The expression of the column.
    is_known: bool  # Whether the column is known to be one of a frame.


def _find(program: Program) -> Iterator[Found]:
    message = (
        "since pandas 3 this changes a copy of the column, and the frame stays as it is; "
        "compat run changes the frame"
    )
    for change in _changes(program) if program.uses else ():
        name = literals.dotted(change.column) or literals.dotted(change.column.value)
        finding = Finding("columns", CHANGES, name, message, gone="pandas 3.0")
        yield Found(change.node, name, finding)


def _rewrite(program: Program) -> Iterator[Edit | Remark]:
    changes = [*_changes(program)]
    is_clear = all(map(_is_clear, changes))  # If one is not, the file keeps all, with remarks.
    for change in changes:
        column = program.expression(change.column)
        rows = _rows(change)
        if rows is None:
            new = f"{column} = {column}.{change.node.func.attr}(...), without inplace=True"
            start, _ = program.span(change.node)
            edits = [Edit(start, start, f"{column} = "), _without_inplace(program, change.node)]
        else:
            frame = program.expression(change.column.value)
            name = getattr(change.column, "attr", None) or literals.text(change.column.slice)
            key = json.dumps(name, ensure_ascii=False)
            new = f"{frame}.loc[rows, {key}] = ... or {frame}.iloc[...] by positions"
            place = program.expression(rows) if is_clear else ""
            edits = [Edit(*program.span(change.node), f"{frame}.loc[{place}, {key}]")]
        why = "since pandas 3 this changes a copy of the column, not the frame"
        yield from edits if is_clear else [Remark(change.node, f"{why}: write {new}")]


def _is_clear(change: _Change) -> bool:
    """Whether a change can be rewritten: its frame is known, and rows are not given by position."""
    rows = _rows(change)
    by_label = not isinstance(rows, (ast.Slice, ast.Tuple)) and literals.value(rows) is None
    return change.is_known and (rows is None or by_label)


def _rows(change: _Change) -> Any:
    """Returns the expression that selects the rows of an assignment, or None for a call."""
    return literals.unwrapped(getattr(change.node, "slice", None))


def _without_inplace(program: Program, call: ast.Call) -> Edit:
    given = [*call.args, *call.keywords]
    at = next(n for n, one in enumerate(given) if getattr(one, "arg", "") == "inplace")
    start, end = program.argument(call, given[at])
    if at:
        start = program.argument(call, given[at - 1])[1]
    elif given[1:]:
        end = program.argument(call, given[1])[0]
    return Edit(start, end, "")


def _changes(program: Program) -> Iterator[_Change]:
    if not program.modules & {*_PANDAS}:
        return
    frames = _frames(program)
    for node in program.nodes(ast.Assign, ast.AugAssign, ast.Call):
        is_call = isinstance(node, ast.Call)
        for place, column in changed(node):
            is_known = _is_column(column, frames)
            if not is_call and is_known:
                yield _Change(place, column, True)
            elif is_call and place.attr in _METHODS and _is_statement(program, node):
                is_named = isinstance(column, ast.Subscript) and literals.text(column.slice)
                if is_known or is_named:
                    yield _Change(node, column, is_known)


def _is_statement(program: Program, call: ast.Call) -> bool:
    return isinstance(program.parents[call], ast.Expr)


def _is_column(node: Any, frames: set[str]) -> bool:
    owner = literals.dotted(getattr(node, "value", node))
    is_plain = not (isinstance(node, ast.Attribute) and node.attr in _NO_COLUMNS)
    is_named = isinstance(node, ast.Attribute) or (
        isinstance(node, ast.Subscript) and bool(literals.text(node.slice))
    )
    return is_plain and is_named and owner in frames


def _frames(program: Program) -> set[str]:
    """Returns the names that are bound to results of pandas, or used as frames."""

    def is_made(value: ast.expr, _: set[str]) -> bool:
        maker = program.meaning(value.func) if isinstance(value, ast.Call) else ""
        return maker.rpartition(".")[0] in _PANDAS

    attributes = program.nodes(ast.Attribute)
    used = {literals.dotted(node.value) for node in attributes if node.attr in _OF_FRAMES}
    return (used | scopes.holding(program.nodes(ast.Assign), is_made)) - {""}


RULES = (
    Rule(
        "columns",
        "pandas 3.0",
        "what was done in place to a column of a frame changed the frame",
        'import pandas as pd\nframe = pd.read_csv("x.csv")\nframe["a"].fillna(0, inplace=True)\n'
        "frame.b[frame.b > 1] = 1",
        'import compat.v1.packages.pandas as pd\nframe = pd.read_csv("x.csv")\n'
        'frame["a"] = frame["a"].fillna(0)\nframe.loc[frame.b > 1, "b"] = 1',
        find=_find,
        rewrite=_rewrite,
    ),
)
