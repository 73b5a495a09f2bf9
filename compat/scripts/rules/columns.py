"""What was done in place to a column of a frame changed the frame.

pandas 3.0: "Chained assignment never works": the column is a copy of what the frame has.
"""

from __future__ import annotations

import ast
import json
from typing import Any, Iterator, NamedTuple

from compat.scripts.reading import literals
from compat.scripts.reading.frames import is_in_place
from compat.scripts.reading.program import Edit, Program, Remark
from compat.scripts.rules.findings import CHANGES, Finding
from compat.scripts.rules.rule import Found, Rule, Script

_PANDAS = ("pandas", "compat.v1.packages.pandas")
_METHODS = {"bfill", "clip", "ffill", "fillna", "interpolate", "mask", "replace", "where"}
# What has these is a frame.
_OF_FRAMES = {"dropna", "groupby", "iloc", "iterrows", "ix", "loc", "select_dtypes"}
_NO_COLUMNS = {*_OF_FRAMES, "T", "at", "columns", "dtypes", "iat", "index", "values"}


class _Change(NamedTuple):
    """An operation in place: a statement that calls a method of a column, or a target in one."""

    node: Any
    column: Any
    is_known: bool  # To be one of a frame.


def _find(script: Script) -> Iterator[Found]:
    message = (
        "since pandas 3 this changes a copy of the column, and the frame stays as it is; "
        "compat run changes the frame"
    )
    for part in script.parts if script.uses else ():
        for change in _changes(part.tree):
            name = literals.dotted(change.column) or literals.dotted(change.column.value)
            finding = Finding("columns", CHANGES, name, message, gone="pandas 3.0")
            yield Found(part.number, change.node, name, finding)


def _rewrite(program: Program) -> Iterator[Edit | Remark]:
    changes = [*_changes(program.tree)]
    is_clear = all(map(_is_clear, changes))  # Or else all are left in the file.
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
    """Whether it is known what a change means in today's pandas."""
    rows = _rows(change)
    by_label = not isinstance(rows, (ast.Slice, ast.Tuple)) and literals.value(rows) is None
    return change.is_known and (rows is None or by_label)


def _rows(change: _Change) -> Any:
    """Returns what chooses the rows of a target, or None for a call."""
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


def _changes(tree: ast.Module) -> Iterator[_Change]:
    nodes: list[Any] = list(ast.walk(tree))
    makers = _makers(nodes)
    frames = _frames(nodes, makers) if makers else set()
    for node in nodes if makers else ():
        call: Any = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in _METHODS:
            column: Any = getattr(call.func, "value", None)
            is_known = _is_column(column, frames)
            is_named = isinstance(column, ast.Subscript) and literals.text(column.slice)
            if is_in_place(call) and (is_known or is_named):
                yield _Change(call, column, is_known)
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Subscript) and _is_column(target.value, frames):
                    yield _Change(target, target.value, True)


def _is_column(node: Any, frames: set[str]) -> bool:
    owner = literals.dotted(getattr(node, "value", node))
    is_plain = not (isinstance(node, ast.Attribute) and node.attr in _NO_COLUMNS)
    is_named = isinstance(node, ast.Attribute) or (
        isinstance(node, ast.Subscript) and bool(literals.text(node.slice))
    )
    return is_plain and is_named and owner in frames


def _makers(nodes: list[Any]) -> set[str]:
    """Returns what the program calls pandas, and functions that it has from there."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(a.asname or a.name for a in node.names if a.name in _PANDAS)
        elif isinstance(node, ast.ImportFrom) and node.module in _PANDAS:
            found.update(alias.asname or alias.name for alias in node.names)
    return found


def _frames(nodes: list[Any], makers: set[str]) -> set[str]:
    """Returns the names that are bound to what pandas makes, or used as frames."""
    found = {
        literals.dotted(n.value)
        for n in nodes
        if isinstance(n, ast.Attribute) and n.attr in _OF_FRAMES
    }
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            maker = literals.dotted(node.value.func)
            if maker.rpartition(".")[0] in makers or maker in makers:
                found.update(map(literals.dotted, node.targets))
    return found - {""}


RULE = Rule(
    "columns",
    "pandas 3.0",
    "what was done in place to a column of a frame changed the frame",
    'import pandas as pd\nframe = pd.read_csv("x.csv")\nframe["a"].fillna(0, inplace=True)\n'
    "frame.b[frame.b > 1] = 1",
    'import compat.v1.packages.pandas as pd\nframe = pd.read_csv("x.csv")\n'
    'frame["a"] = frame["a"].fillna(0)\nframe.loc[frame.b > 1, "b"] = 1',
    find=_find,
    rewrite=_rewrite,
)
