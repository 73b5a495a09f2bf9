"""Collects the findings of a script or a notebook."""

from __future__ import annotations

import ast
import os
import re
from typing import Sequence

from compat.errors import UserError
from compat.scripts.reading import conversion
from compat.scripts.reading import program as reading
from compat.scripts.rules.catalog import RULES, UNREADABLE_RULE
from compat.scripts.rules.rule import UNREADABLE, Finding, Rule

# Larger files are generated. Notebooks contain their images.
_MAX_BYTES = {".py": 1_000_000, ".ipynb": 50_000_000}
_FOREIGN = ("__pycache__", "node_modules", "site-packages")
_FARTHEST = 8  # The largest distance, in lines, at which the text of a node is searched.
_NEAR = 100  # The same in characters, in the line.
_LONG_LINE = 10_000


def check(path: str, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Returns the findings of a file by these rules, in the order of its lines."""
    found: dict[Finding, None] = {}  # A position can occur twice, as a name and as a call.
    try:
        sources = []
        for source in _sources(path):
            try:
                source.tree()
                sources.append(source)
            except SyntaxError as error:
                why = str(error.msg).partition("neither Python 3 nor Python 2")[0]
                message = f"neither Python 3 nor Python 2{': ' if why else ''}{why}"
                position = error.lineno or 1, error.offset or 1
                found[_unreadable(path, message, source.cell, *position)] = None
            except UserError as error:
                found[_unreadable(path, str(error), source.cell)] = None
        program = reading.of(*sources)
        lines = {source.cell: source.text.split("\n") for source in sources}
        with conversion.deep(path):
            for rule in rules:
                for node, spelled, finding in rule.find(program):
                    place = locate_operator if spelled == "/" else locate
                    cell = program.source(node).cell
                    line, column = place(lines[cell], node, spelled)
                    finding = finding._replace(file=path, cell=cell, line=line, column=column)
                    found[finding] = None
    except (OSError, UserError) as error:
        found[_unreadable(path, str(error))] = None
    return sorted(found, key=lambda finding: (finding.cell, finding.line, finding.column))


def _sources(path: str) -> list[conversion.Source]:
    """Returns the parts of a file; raises UserError for one that is too large."""
    size = os.path.getsize(path)
    most = _MAX_BYTES[".ipynb" if path.endswith(".ipynb") else ".py"]
    if size > most:
        raise UserError(f"script {path} has {size} bytes, expected at most {most}")
    return conversion.read(path)


def _unreadable(path: str, why: str, cell: int = 0, line: int = 1, column: int = 1) -> Finding:
    message = " ".join(why.split())
    known = Finding(UNREADABLE_RULE.id, UNREADABLE, path, message)
    return known._replace(file=path, cell=cell, line=line, column=column)


def files(path: str) -> list[str]:
    """Returns a file itself, or the scripts and notebooks in a folder, sorted."""
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise UserError(f"path {path} is neither a file nor a folder; name a script or a folder")
    found: list[str] = []
    for folder, folders, inside in os.walk(path):
        # Not generated or installed files.
        folders[:] = sorted(n for n in folders if not (n.startswith(".") or n in _FOREIGN))
        names = sorted(name for name in inside if name.endswith((".py", ".ipynb")))
        # Not a named pipe, which would block.
        found += filter(os.path.isfile, (os.path.join(folder, name) for name in names))
    if not found:
        raise UserError(f"folder {path} has no *.py or *.ipynb file; name a folder that has")
    return found


def locate(lines: Sequence[str], node: ast.AST, spelled: str) -> tuple[int, int]:
    """Returns the line and column, from one, of the text of a node, at its position or nearby."""
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
    """Returns the columns at which `spelled` occurs in a line, preferably near `column`.

    `column` is where the node begins in the parsed text. It may be wrong for this line, since the
    text is converted before it is parsed, and since `spelled` may be on another line than the
    beginning of the node. So if `spelled` does not occur near `column`, the whole line is searched,
    unless the line is very long.
    """
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
