"""Pieces of a program that move: what a name depends on, and the lines of statements."""

from __future__ import annotations

import ast
import re
from typing import Any, Iterable, Sequence

from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import literals, scopes

# Behind a statement, with what follows on its line.
_SEMICOLON = re.compile(r"[ \t]*;[ \t]*(#|[^\s#]|)")
_CHANGES = ("append", "extend", "insert", "update", "pop", "remove")


class Pieces:
    """Takes statements out of a program, and remembers which.

    Attributes:
      moved: the places in the text, start and end, of what was taken.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.moved: list[tuple[int, int]] = []

    def needed(
        self, names: Iterable[str], statements: Iterable[Any], without: Any = (), always: Any = ()
    ) -> tuple[list[Any], set[str]]:
        """Returns the statements that make or change names, in order, and all that these read.

        The statements are straight on, one after the other; a later one may need an earlier one.
        Those `without` which it is done are left out, those that are `always` there stay.
        """
        wanted, everything = {*names}, {*names}
        found: list[Any] = []
        for statement in reversed([*statements]):
            is_wanted = statement in always or changed(statement) & wanted
            if is_wanted and statement not in without:
                found.insert(0, statement)
                if isinstance(statement, ast.Assign):  # What it was before does not matter.
                    wanted -= scopes.bound(statement.targets)
                wanted |= used(statement, without)
                everything |= wanted
        return found, everything

    def lines(self, node: ast.AST) -> tuple[int, int]:
        """Returns start and end of a statement's lines, with the comments directly above."""
        text = self.program.text
        start, end = self.program.span(node)
        for decorator in getattr(node, "decorator_list", []):
            start = min(start, self.program.span(decorator)[0])
        start = text.rfind("\n", 0, start) + 1
        while start > 0:
            before = text.rfind("\n", 0, start - 1) + 1
            if not text[before:start].lstrip().startswith("#"):
                break
            start = before
        return start, text.find("\n", end) + 1 or len(text)

    def alone(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Returns start and end of the lines of a statement, or None if they have another."""
        text = self.program.text
        start, end = self.program.span(statement)
        line, after = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)
        is_last = text[end:after].lstrip()[:1] in ("", "#")
        return (line, after) if is_last and not text[line:start].strip() else None

    def renamed(self, definition: Any, name: str) -> Edit:
        """Returns the edit that names a function or a class anew where it is defined."""
        word = re.compile(rf"\b(?:def|class)\s+({definition.name})\b")
        found = word.search(self.program.text, self.lines(definition)[0])
        assert found is not None
        return Edit(*found.span(1), name)

    def removed(self, definition: ast.stmt) -> Edit:
        """Returns the edit that removes a function or a class, with the blank lines behind it."""
        text, (start, end) = self.program.text, self.lines(definition)
        while text[end : end + 1] == "\n" and text[start - 2 : start] == "\n\n":
            end += 1
        return Edit(start, end, "")

    def importing(self, statement: Any, names: Sequence[str]) -> Edit:
        """Returns the edit by which a statement imports these names alone, such as "rows as r"."""
        if names:
            source = (
                f"{'.' * getattr(statement, 'level', 0)}{getattr(statement, 'module', '') or ''}"
            )
            front = f"from {source} " if source else ""
            return Edit(*self.program.span(statement), f"{front}import {', '.join(names)}")
        alone = self.alone(statement)
        return Edit(*alone, "") if alone else Edit(*self.program.span(statement), "pass")

    def text(self, node: ast.AST) -> str:
        """Returns the text of a node."""
        return self.program.text[slice(*self.program.span(node))]

    def take(self, statements: Iterable[ast.stmt], edits: Iterable[Edit], indent: str) -> str:
        """Returns the lines of statements after edits, at an indent."""
        found = []
        inner = self.program.inner_lines()
        for statement in statements:
            start, end = self.lines(statement)
            self.moved.append((start, end))
            first = self.program.span(statement)[0]
            line = self.program.text[self.program.text.rfind("\n", 0, first) + 1 : first]
            width = len(line) - len(line.lstrip(" \t"))
            changes = {edit for edit in edits if start <= edit.start and edit.end <= end}
            marks = {start, *(i + 1 for i in range(start, end - 1) if self._ends(i))}
            for mark in sorted(marks):
                if mark in inner or any(e.start < mark < e.end for e in changes):
                    continue
                blanks = re.match(r"[ \t]*", self.program.text[mark:end])
                cut = min(len(blanks[0]) if blanks is not None else 0, width)
                if not any(e.start < mark + cut and mark < e.end for e in changes):
                    changes.add(Edit(mark, mark + cut, indent if self._filled(mark) else ""))
            found.append(self.program.edited(changes, (start, end)))
        return "".join(found)

    def _ends(self, place: int) -> bool:
        return self.program.text[place] == "\n"

    def _filled(self, start: int) -> bool:
        return bool(self.program.text[start : self.program.text.find("\n", start)].strip())

    def left(self) -> str:
        """Returns all lines that were not taken, without runs of blank ones."""
        text, kept, position = self.program.text, [], 0
        for start, end in sorted(self.moved):
            if start >= position:
                kept.append(text[position:start])
            position = max(position, end)
        return re.sub(r"\n{3,}", "\n\n", "".join([*kept, text[position:]])).strip("\n")


def separated(program: Program) -> Program:
    """Returns a program whose statements end without a semicolon, each on lines of its own.

    Those behind a colon, as of `if done: a(); b()`, stay.
    """
    edits = []
    for node in program.nodes(ast.AST):
        for name in ("body", "orelse", "finalbody"):
            body: Any = getattr(node, name, [])
            indent = None  # Of the first statement on the line.
            for statement in body if isinstance(body, list) else []:
                start, end = program.span(statement)
                front = program.text[program.text.rfind("\n", 0, start) + 1 : start]
                indent = indent if front.strip() else front
                sign = _SEMICOLON.match(program.text, end)
                if indent is not None and sign is not None and not hasattr(statement, "body"):
                    line = {"": "", "#": "  "}.get(sign[1], f"\n{indent}")
                    edits.append(Edit(end, sign.start(1), line))
    return program.after(edits) if edits else program


def spelled(alias: ast.alias) -> str:
    """Returns a name that is imported as the statement spells it, such as "rows as r"."""
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def used(node: ast.AST, without: Any = ()) -> set[str]:
    """Returns all names that a node reads, `without` some of the nodes in it."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part in without:
            continue
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found.add(part.id)
        waiting += ast.iter_child_nodes(part)
    return found


def independent(found: list[Any], statements: Any, names: Iterable[str] = ()) -> list[Any]:
    """Returns those of some statements that share no name with the other ones, nor these names."""
    while True:
        built = scopes.bound(statements, without=found) | {*names}
        left = [s for s in found if not (used(s) | scopes.bound([s])) & built]
        if left == found:
            return found
        found = left


def changed(statement: ast.AST) -> set[str]:
    """Returns the names that a statement binds, or whose lists it changes."""
    found = scopes.bound([statement])
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found |= used(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name, _, method = literals.dotted(node.value.func).rpartition(".")
            found |= {name.partition(".")[0]} if method in _CHANGES else set()
            found |= set().union(*map(used, node.value.args)) if method == "shuffle" else set()
    return found
