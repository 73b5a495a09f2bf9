"""Collects the findings of a script or a notebook."""

from __future__ import annotations

import ast
import os
import re
from typing import Sequence

from compat.errors import UserError
from compat.scripts.reading import conversion
from compat.scripts.reading.uses import Walk
from compat.scripts.rules import lookup
from compat.scripts.rules.catalog import RULES, UNREADABLE_RULE
from compat.scripts.rules.findings import UNREADABLE, Finding
from compat.scripts.rules.rule import Part, Rule, Script

# Larger files are generated; notebooks contain their images.
_MAX_BYTES = {".py": 1_000_000, ".ipynb": 50_000_000}
_FOREIGN = ("__pycache__", "node_modules", "site-packages")
_FARTHEST = 8  # Lines.
_NEAR = 100  # Characters.
_LONG_LINE = 10_000


def check(path: str, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Returns the findings of a file by these rules, in the order of its lines."""
    program = _Program(path)
    try:
        script = program.read()
        with conversion.deep(path):
            for rule in rules:
                for part, node, spelled, finding in rule.find(script):
                    program.add(part, node, spelled, finding)
    except (OSError, UserError) as error:
        program.unreadable(0, 1, 1, str(error))
    found = dict.fromkeys(program.findings)  # A position can occur twice, as a name and as a call.
    return sorted(found, key=lambda finding: (finding.cell, finding.line, finding.column))


class _Program:
    """A script or a notebook, whose code cells are the parts of a program."""

    def __init__(self, path: str) -> None:
        self.findings: list[Finding] = []
        self._path = path
        self._is_notebook = path.endswith(".ipynb")
        self._lines: list[list[str]] = []

    def read(self) -> Script:
        """Returns what is known of it; adds a finding for each part that cannot be read."""
        size = os.path.getsize(self._path)
        most = _MAX_BYTES[".ipynb" if self._is_notebook else ".py"]
        if size > most:
            raise UserError(f"script {self._path} has {size} bytes, expected at most {most}")
        walk, parts = Walk(), []
        for number, part in enumerate(conversion.read(self._path)):
            self._lines.append(part.text.split("\n"))
            try:
                with conversion.deep(part.filename):
                    parts.append(Part(number, part.tree(), part.python2))
                    walk.part(number, parts[-1].tree)
            except SyntaxError as error:
                why = str(error.msg).partition("neither Python 3 nor Python 2")[0]
                message = f"neither Python 3 nor Python 2{': ' if why else ''}{why}"
                self.unreadable(number, error.lineno or 1, error.offset or 1, message)
            except UserError as error:
                self.unreadable(number, 1, 1, str(error))
        with conversion.deep(self._path):
            uses = walk.finish()
        names = {(use.is_tensorflow, use.name) for use in uses}
        known = {(is_tf, name): lookup.find(name, is_tf) for is_tf, name in names}
        is_0x = any(finding.gone == "1.0" for finding in known.values() if finding is not None)
        return Script(parts, uses, known, is_0x)

    def unreadable(self, part: int, line: int, column: int, why: str) -> None:
        """Adds a finding of what cannot be read."""
        message = " ".join(why.split())
        finding = Finding(UNREADABLE_RULE.id, UNREADABLE, self._path, message)
        self._add(part, (line, column), finding)

    def add(self, part: int, node: ast.AST, spelled: str, finding: Finding) -> None:
        """Adds a finding of a node, which is spelled so."""
        place = locate_operator if spelled == "/" else locate
        self._add(part, place(self._lines[part], node, spelled), finding)

    def _add(self, part: int, position: tuple[int, int], finding: Finding) -> None:
        cell = part + 1 if self._is_notebook and self._lines else 0
        line, column = position
        found = finding._replace(file=self._path, cell=cell, line=line, column=column)
        self.findings.append(found)


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
