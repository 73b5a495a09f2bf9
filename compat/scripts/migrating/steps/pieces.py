"""Pieces of a program that move: what a name depends on, and the lines of statements."""

from __future__ import annotations

import ast
import re
from typing import Any, Iterable

from compat.scripts.migrating.program import Edit, Program
from compat.scripts.source import scopes


class Pieces:
    """Takes statements out of a program, and remembers which.

    Attributes:
      moved: the places in the text, start and end, of what was taken.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.moved: list[tuple[int, int]] = []

    def needed(
        self, names: Iterable[str], statements: Iterable[ast.stmt], without: Any = ()
    ) -> tuple[list[ast.stmt], set[str]]:
        """Returns the statements on which names depend, in order, and all names that these use.

        The statements are straight on, one after the other; a later one may need an earlier one.
        """
        wanted = set(names)
        found: list[ast.stmt] = []
        for statement in reversed([*statements]):
            if statement in without or not scopes.bound([statement]) & wanted:
                continue
            found.insert(0, statement)
            wanted |= used(statement)
        return found, wanted

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

    def removed(self, definition: ast.stmt) -> Edit:
        """Returns the edit that removes a function or a class, with the blank lines behind it."""
        text, (start, end) = self.program.text, self.lines(definition)
        while text[end : end + 1] == "\n" and text[start - 2 : start] == "\n\n":
            end += 1
        return Edit(start, end, "")

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
            own = re.match(
                r"[ \t]*",
                self.program.text[
                    self.program.text.rfind("\n", 0, self.program.span(statement)[0]) + 1 :
                ],
            )
            width = len(own[0]) if own is not None else 0
            changes = [edit for edit in edits if start <= edit.start and edit.end <= end]
            changes = sorted(set(changes), key=lambda edit: edit[:2])
            pieces, position = [], start
            marks = {start, *(i + 1 for i in range(start, end - 1) if self._ends(i))}
            for mark in sorted(marks):
                if mark in inner or any(e.start < mark < e.end for e in changes):
                    continue
                blanks = re.match(r"[ \t]*", self.program.text[mark:end])
                cut = min(len(blanks[0]) if blanks is not None else 0, width)
                if not any(e.start < mark + cut and mark < e.end for e in changes):
                    changes.append(Edit(mark, mark + cut, indent if self._filled(mark) else ""))
            for edit in sorted(changes, key=lambda edit: edit[:2]):
                pieces += [self.program.text[position : edit.start], edit.text]
                position = edit.end
            found.append("".join([*pieces, self.program.text[position:end]]))
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
