"""Classes with a base class of the program, written with what that adds."""

from __future__ import annotations

import ast
import re
from typing import Any, Callable, Iterator

from compat.scripts.migrating.classes.members import taken
from compat.scripts.migrating.steps.pieces import Pieces
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import literals, scopes

_COMMA = re.compile(r"\s*(,\s*)?")


def flattened(program: Program, wanted: Callable[[Any], bool]) -> Program:
    """Returns a program in which classes have no base class of it, if one of both is `wanted`.

    What a class does not define is copied from its base. What it defines and calls there, by
    `super()` or `Base.method(self)`, has another name. A base that nothing else uses is removed.
    """
    while True:
        edits = next(_edits(program, wanted), None)
        if edits is None:
            return program
        program = program.after(edits)


def _edits(program: Program, wanted: Callable[[Any], bool]) -> Iterator[list[Edit]]:
    top = {n.name: n for n in program.tree.body if isinstance(n, ast.ClassDef)}
    bases = {n: [*map(literals.dotted, n.bases)] for n in top.values()}
    for node, names in bases.items():
        base = top.get(names[0]) if len(names) == 1 else None
        if base is None or not (wanted(node) or wanted(base)) or not _is_plain(base):
            continue
        uses = {n for n in program.nodes(ast.Name) if n.id == node.name} - {*ast.walk(node)}
        if not uses and [*bases.values()].count(names) > 1:
            yield [Pieces(program).removed(node)]  # Another one of the kind is used.
        edits = _Flattening(program, node, base).edits()
        if edits:
            yield edits


def _is_plain(base: ast.ClassDef) -> bool:
    """Whether all that a class has can be copied."""
    names = {literals.dotted(n) for n in base.bases}
    is_text = [isinstance(part, ast.Expr) and literals.text(part.value) for part in base.body]
    parts = [part for part, text in zip(base.body, is_text) if not text]
    is_known = all(isinstance(p, (ast.FunctionDef, ast.Assign, ast.Pass)) for p in parts)
    return is_known and not (names - {"object"} or base.keywords or base.decorator_list)


class _Flattening:
    """A class, and its base, of which it gets the members."""

    def __init__(self, program: Program, node: Any, base: Any) -> None:
        self.program, self.node, self.base, self.pieces = program, node, base, Pieces(program)
        self.own = scopes.bound(node.body)
        words = taken(program) | {n.attr for n in program.nodes(ast.Attribute)}
        self.methods = {n.name for n in base.body if isinstance(n, ast.FunctionDef)}
        # What the class has another one of.
        self.new = {
            name: scopes.free(f"{name.strip('_')}_of_{base.name.lower()}", words)
            for name in self.methods & self.own
        }
        self.called: set[str] = set()
        self.gone: set[ast.AST] = set()  # Names of the base in calls.

    def edits(self) -> list[Edit]:
        """Returns the edits; none if it is not known what they would have to be."""
        nodes: list[Any] = [n for part in (self.node, self.base) for n in ast.walk(part)]
        words = [str(getattr(n, "attr", getattr(n, "name", ""))) for n in nodes]
        if any(word.startswith("__") and not word.endswith("__") for word in words):
            return []  # Names that Python makes depend on the class.
        program, pieces = self.program, self.pieces
        calls = [self._calls(self.node)]
        copied: list[Any] = []
        while None not in calls:
            members = [m for m in self.base.body if isinstance(m, (ast.FunctionDef, ast.Assign))]
            found = [m for m in members if m not in copied and self._is_needed(m)]
            calls += map(self._calls, found)
            copied += found
            if not found:
                break
        first = program.span(self.node.body[0])[0]
        line = program.text.rfind("\n", 0, first) + 1
        indent = program.text[line:first]
        if None in calls or indent.strip():
            return []
        inner = [edit for each in calls[1:] for edit in each or ()]
        renamed = [m for m in copied if getattr(m, "name", "") in self.new]
        inner += [pieces.renamed(m, self.new[m.name]) for m in renamed]
        copied.sort(key=self.base.body.index)
        lines = ["\n" + pieces.take([member], inner, indent) for member in copied]
        end = pieces.lines(self.node.body[-1])[1]
        edits = [*(calls[0] or []), Edit(end, end, "".join(lines))]
        edits.append(Edit(*program.span(self.node.bases[0]), "object"))
        uses = {n for n in program.nodes(ast.Name) if n.id == self.base.name}
        left = uses - {*ast.walk(self.base), self.node.bases[0]} - self.gone
        return edits if left else [*edits, pieces.removed(self.base)]

    def _is_needed(self, member: Any) -> bool:
        """Whether a member of the base is what the class has, or calls, of it."""
        if isinstance(member, ast.FunctionDef) and member.name in self.own:
            return member.name in self.called
        return not scopes.bound([member]) & self.own

    def _calls(self, part: Any) -> list[Edit] | None:
        """Returns edits of calls of the base's methods in a part; None if one is not known."""
        program, parents, edits = self.program, self.program.parents, []
        for node in ast.walk(part):
            is_super = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"
            is_base = isinstance(node, ast.Name) and node.id == self.base.name
            method: Any = parents[node]
            if not (is_super or is_base) or not isinstance(method, ast.Attribute):
                continue
            name, is_own = method.attr, part is self.node
            call: Any = parents[method]
            is_known = name in self.methods and (is_own or is_base)
            if not is_known and (is_base or name == "__init__"):
                continue  # A constant of the base, or the constructor of `object`.
            arguments, owner = getattr(call, "args", []), self._owner(node)
            given = getattr(arguments[0], "id", "") if is_base and arguments else owner
            is_call = getattr(call, "func", None) is method and bool(owner)
            words = [getattr(word, "id", "") for word in getattr(node, "args", [])]
            is_call = is_call and words in ([], [self.node.name, owner])
            if not (is_known and is_call and given == owner):
                return None
            self.called.add(name)
            self.gone.add(node)
            start, end = program.span(node)[0], program.span(method)[1]
            text = f"{owner}.{self.new.get(name, name)}"
            if is_base:
                first: Any = arguments[0]
                comma = _COMMA.match(program.text, program.span(first)[1])
                end, text = comma.end() if comma else end, f"{text}("
            edits.append(Edit(start, end, text))
        return edits

    def _owner(self, node: ast.AST) -> str:
        """Returns the name of the object in the method that a node is in, or ""."""
        method: Any = self.program.enclosing(node)
        is_plain = self.program.parents.get(method) in (self.node, self.base)
        is_plain = is_plain and not method.decorator_list and bool(method.args.args)
        return method.args.args[0].arg if is_plain else ""
