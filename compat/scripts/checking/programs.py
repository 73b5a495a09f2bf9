"""Collects the findings of a script or a notebook."""

from __future__ import annotations

import ast
import os
from typing import Iterator

from compat.errors import UserError
from compat.scripts.checking import call_rules, division, hosts_and_folders, name_rules, positions
from compat.scripts.checking.findings import CHANGES, FAILS, GRAPH, UNREADABLE, Finding, Kind
from compat.scripts.checking.uses import Use, Walk
from compat.scripts.names import table
from compat.scripts.source import conversion

# Larger files are generated; notebooks contain their images.
_MAX_BYTES = {".py": 1_000_000, ".ipynb": 50_000_000}


def check(path: str) -> list[Finding]:
    """Returns the findings of a file, in the order of its lines."""
    program = _Program(path)
    program.read()
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

    def read(self) -> None:
        """Collects the findings."""
        try:
            size = os.path.getsize(self._path)
            most = _MAX_BYTES[".ipynb" if self._is_notebook else ".py"]
            if size > most:
                raise UserError(f"script {self._path} has {size} bytes, expected at most {most}")
            parts = conversion.read(self._path)
        except (OSError, UserError) as error:
            self._unreadable(0, 1, 1, str(error))
            return
        for number, part in enumerate(parts):
            self._lines.append(part.text.split("\n"))
            try:
                with conversion.deep(part.filename):
                    self._read_part(number, part)
            except SyntaxError as error:
                why = str(error.msg).partition("neither Python 3 nor Python 2")[0]
                message = f"neither Python 3 nor Python 2{': ' if why else ''}{why}"
                self._unreadable(number, error.lineno or 1, error.offset or 1, message)
            except UserError as error:
                self._unreadable(number, 1, 1, str(error))
        try:
            with conversion.deep(self._path):
                self._judge(self._walk.finish())
        except UserError as error:
            self._unreadable(0, 1, 1, str(error))

    def _read_part(self, number: int, part: conversion.Source) -> None:
        tree = part.tree()
        self._walk.part(number, tree)
        for place in hosts_and_folders.find(tree):
            position = self._locate(number, place.node, place.text)
            self._add(place.kind, number, position, place.text, place.message)
        if part.python2:
            for right in division.find(tree, part.text):
                position = positions.locate_operator(self._lines[number], right, "/")
                self._add(CHANGES, number, position, "/", division.MESSAGE)

    def _judge(self, uses: list[Use]) -> None:
        known = {name: name_rules.find(name) for name in {use.name for use in uses}}
        is_0x = any(found.gone == "1.0" for found in known.values() if found is not None)
        has_graph = any(name in name_rules.GRAPH_SWITCHES for name in known)
        failed_imports: set[str] = set()
        for use in uses:
            if use.call is not None:
                self._judge_call(use, is_0x)
                continue
            found = known[use.name]
            if found is None or (found.kind is GRAPH and has_graph):
                continue
            if found.kind is FAILS:
                if any(_within(use.name, module) for module in failed_imports):
                    continue  # Reported once, at the import.
                if use.imported:
                    failed_imports.add(use.name)
                if use.guarded:
                    continue
            has_graph = has_graph or found.kind is GRAPH  # Reported once per program.
            position = self._locate(use.part, use.node, use.spelled)
            self._add(found.kind, use.part, position, *found[1:])

    def _judge_call(self, use: Use, is_0x: bool) -> None:
        assert use.call is not None
        for rule in call_rules.RULES.get(use.name, ()):
            if rule.is_old(use.call, is_0x):
                entry = table.NAMES.get(use.name)
                by = entry.by.replace(":", ".") if entry is not None else ""
                name = f"tf.{use.name}"
                message = f"{name} {rule.says}"
                position = self._locate(use.part, use.node, use.spelled)
                self._add(rule.kind, use.part, position, name, message, by)

    def _locate(self, part: int, node: ast.AST, spelled: str) -> tuple[int, int]:
        return positions.locate(self._lines[part], node, spelled)

    def _add(self, kind: Kind, part: int, position: tuple[int, int], name: str, *more: str) -> None:
        self.findings.append(Finding(kind, self._path, self._cell(part), *position, name, *more))

    def _unreadable(self, part: int, line: int, column: int, why: str) -> None:
        self._add(UNREADABLE, part, (line, column), self._path, " ".join(why.split()))

    def _cell(self, part: int) -> int:
        return part + 1 if self._is_notebook and self._lines else 0


def _within(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")


def files(path: str) -> Iterator[str]:
    """Yields a file itself, or the scripts and notebooks in a folder, sorted.

    Raises:
      UserError: the path does not exist, or the folder holds none.
    """
    if os.path.isfile(path):
        yield path
        return
    if not os.path.isdir(path):
        raise UserError(f"path {path} is neither a file nor a folder; name a script or a folder")
    is_empty = True
    for folder, folders, inside in os.walk(path):
        folders[:] = sorted(name for name in folders if not _is_foreign(name))
        for name in sorted(inside):
            file = os.path.join(folder, name)
            # Not a named pipe, which would block.
            if name.endswith((".py", ".ipynb")) and os.path.isfile(file):
                is_empty = False
                yield file
    if is_empty:
        raise UserError(f"folder {path} has no *.py or *.ipynb file; name a folder that has")


def _is_foreign(folder: str) -> bool:
    """Whether a folder holds generated or installed files."""
    return folder.startswith(".") or folder in ("__pycache__", "node_modules", "site-packages")
