"""Collects the findings of a script or a notebook."""

from __future__ import annotations

import ast
import os
import re
from typing import Sequence

from compat.errors import UserError
from compat.scripts.checking import (
    call_rules,
    elements,
    hosts_and_folders,
    name_rules,
    rules,
    syntax,
)
from compat.scripts.checking.findings import FAILS, GRAPH, SERVED, UNREADABLE, Finding
from compat.scripts.checking.uses import Use, Walk
from compat.scripts.source import conversion, literals

# Larger files are generated; notebooks contain their images.
_MAX_BYTES = {".py": 1_000_000, ".ipynb": 50_000_000}
_FOREIGN = ("__pycache__", "node_modules", "site-packages")
_FARTHEST = 8  # Lines.
_NEAR = 100  # Characters.
_LONG_LINE = 10_000


def check(path: str) -> list[Finding]:
    """Returns the findings of a file, in the order of its lines."""
    program = _Program(path)
    try:
        program.read()
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
        self._walk = Walk()
        self._elements: list[tuple[int, ast.expr]] = []
        self._tostrings: list[tuple[int, ast.expr]] = []

    def read(self) -> None:
        """Collects the findings."""
        size = os.path.getsize(self._path)
        most = _MAX_BYTES[".ipynb" if self._is_notebook else ".py"]
        if size > most:
            raise UserError(f"script {self._path} has {size} bytes, expected at most {most}")
        for number, part in enumerate(conversion.read(self._path)):
            self._lines.append(part.text.split("\n"))
            try:
                with conversion.deep(part.filename):
                    self._read_part(number, part)
            except SyntaxError as error:
                why = str(error.msg).partition("neither Python 3 nor Python 2")[0]
                message = f"neither Python 3 nor Python 2{': ' if why else ''}{why}"
                self.unreadable(number, error.lineno or 1, error.offset or 1, message)
            except UserError as error:
                self.unreadable(number, 1, 1, str(error))
        with conversion.deep(self._path):
            self._judge(self._walk.finish())

    def unreadable(self, part: int, line: int, column: int, why: str) -> None:
        """Adds a finding of what cannot be read."""
        message = " ".join(why.split())
        finding = Finding(rules.UNREADABLE.id, UNREADABLE, self._path, message)
        self._add(part, (line, column), finding)

    def _read_part(self, number: int, part: conversion.Source) -> None:
        tree = part.tree()
        self._walk.part(number, tree)
        for node, finding in hosts_and_folders.find(tree):
            self._add(number, locate(self._lines[number], node, finding.name), finding)
        for node, text, finding in syntax.of_python2(tree) if part.python2 else ():
            place = locate_operator if text == "/" else locate
            self._add(number, place(self._lines[number], node, text), finding)
        self._elements += [(number, node) for node in elements.find(tree)]
        self._tostrings += [(number, call.func) for call in syntax.tostrings(tree)]

    def _judge(self, uses: list[Use]) -> None:
        known = {
            (is_tf, name): name_rules.find(name, is_tf)
            for is_tf, name in {(use.is_tensorflow, use.name) for use in uses}
        }
        is_0x = any(finding.gone == "1.0" for finding in known.values() if finding is not None)
        has_graph = any(name in name_rules.GRAPH_SWITCHES for _, name in known)
        failed_imports: set[str] = set()
        for use in uses:
            if use.call is not None:
                for finding in call_rules.find(use, use.call, is_0x):
                    self._add_use(use, finding)
                continue
            found = known[use.is_tensorflow, use.name]
            if found is None or (found.kind is GRAPH and has_graph):
                continue
            if found.kind is FAILS:
                if any((use.name + ".").startswith(module + ".") for module in failed_imports):
                    continue  # Reported once, at the import.
                if use.imported:
                    failed_imports.add(use.name)
                if use.guarded:
                    continue
            has_graph = has_graph or found.kind is GRAPH  # Reported once per program.
            self._add_use(use, found)

        for number, node in self._tostrings if uses else ():
            message = "tostring() of arrays is gone since NumPy 2.3; compat run serves it"
            finding = Finding("tostring", SERVED, "tostring", message, "tobytes", "NumPy 2.3")
            self._add(number, locate(self._lines[number], node, "tostring"), finding)
        for number, node in self._elements if uses else ():
            text = literals.dotted(node) or "run"
            message = "since NumPy 2.4 an array of one element is not a number; compat run takes it"
            finding = Finding("elements", SERVED, text, message, "item", "NumPy 2.4")
            self._add(number, locate(self._lines[number], node, text), finding)

    def _add_use(self, use: Use, finding: Finding) -> None:
        self._add(use.part, locate(self._lines[use.part], use.node, use.spelled), finding)

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
