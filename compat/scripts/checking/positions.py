"""Finds the position of a syntax tree's node in the text, which Python 2 conversion may shift."""

from __future__ import annotations

import ast
import re
from typing import Sequence

_FARTHEST = 8  # Lines.
_NEAR = 100  # Characters.
_LONG_LINE = 10_000


def locate(lines: Sequence[str], node: ast.AST, spelled: str) -> tuple[int, int]:
    """Returns the line and column, from one, of a node that is spelled so, there or nearby."""
    line, column = _start(lines, node)
    if not spelled:
        return line, column + 1
    for distance in range(_FARTHEST + 1):
        # Conversion adds lines, and an imported name may be on a line below the statement.
        for candidate in dict.fromkeys((line - distance, line + distance)):
            starts = _starts(spelled, _line(lines, candidate), column)
            if starts:
                return candidate, min(starts, key=lambda start: abs(start - column)) + 1
    return line, column + 1


def locate_operator(lines: Sequence[str], right: ast.AST, operator: str) -> tuple[int, int]:
    """Returns the line and column of the operator before a node."""
    line, column = _start(lines, right)
    for candidate in range(line, max(line - _FARTHEST, 0), -1):
        text = _line(lines, candidate)
        found = text.rfind(operator, 0, column if candidate == line else len(text))
        if found >= 0:
            return candidate, found + 1
    return line, column + 1


def _start(lines: Sequence[str], node: ast.AST) -> tuple[int, int]:
    """Returns the line of a node, from one, and the number of characters before it."""
    line = getattr(node, "lineno", 1)
    offset = max(getattr(node, "col_offset", 0), 0)  # In bytes.
    text = _line(lines, line)
    if text.isascii():
        return line, min(offset, len(text))
    return line, len(text.encode()[:offset].decode(errors="ignore"))


def _starts(spelled: str, text: str, column: int) -> list[int]:
    """Returns the columns of a text in a line, near `column`, else anywhere in short lines."""
    word = re.escape(spelled)
    pattern = re.compile(rf"(?<!\w){word}(?!\w)" if spelled[0].isalnum() else word)
    near = max(column - _NEAR, 0), column + len(spelled) + _NEAR
    for start, end in (near, (0, len(text) if len(text) < _LONG_LINE else 0)):
        found = [match.start() for match in pattern.finditer(text, start, end)]
        if found:
            return found
    return []


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""
