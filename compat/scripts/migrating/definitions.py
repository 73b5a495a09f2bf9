"""Definitions of a script's own modules, written in the script that uses them.

What feeds, runs or builds there is written anew together with the script's own.
"""

from __future__ import annotations

import ast
import os
from typing import Any, Callable, Iterator, Mapping

from compat.scripts.migrating.classes.decorators import is_decorator
from compat.scripts.migrating.origins import Import, Modules
from compat.scripts.migrating.steps.kinds import TRAINS, Kinds, last
from compat.scripts.migrating.steps.pieces import Pieces, spelled
from compat.scripts.rules.program import Edit, Program, UnmarkedError
from compat.scripts.source import literals, scopes

# Whether a function or a class is to be in the script.
Wanted = Callable[[Kinds, ast.AST], bool]
_OF_MODULE = {"__file__", "__name__", "__package__"}
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def feeds_or_runs(kinds: Kinds, node: ast.AST) -> bool:
    """Whether a function makes placeholders, feeds or runs, or a class makes these or trains.

    Or it is what `members` takes from such a class, a decorator.
    """
    nodes = [*ast.walk(node)]
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    if any(map(kinds.is_input, calls)) or is_decorator(node):
        return True
    if isinstance(node, ast.ClassDef):
        is_plain = not {literals.dotted(base) for base in node.bases} - {"object"}
        return is_plain and any(last(call) in TRAINS for call in calls)
    runs = any(last(n) == "run" and isinstance(n.func, ast.Attribute) for n in calls)
    return runs or any(isinstance(n, ast.Dict) and is_feed(n) for n in nodes)


def is_feed(node: ast.Dict) -> bool:
    """Whether the keys of a dictionary are names and attributes, such as placeholders."""
    return bool(node.keys) and all(isinstance(key, (ast.Name, ast.Attribute)) for key in node.keys)


def gathered(program: Program, texts: Mapping[str, str], wanted: Wanted) -> Program:
    """Returns a program that has the definitions of its modules that it uses and are `wanted`.

    What these use of their module is imported from there. One stays in its module if it would do
    something else in the program, as one that assigns a name of the module.

    Args:
      program: of `compat.v1`.
      texts: its own modules, also programs of `compat.v1`, by the files that it imports them from.
      wanted: see `Wanted`; also what calls one of these is.
    """
    own = Modules(texts)
    while True:
        edits = next(_edits(own, program, wanted), None)
        if edits is None:
            return program
        program = program.after(edits)


def _edits(own: Modules, program: Program, wanted: Wanted) -> Iterator[list[Edit]]:
    """Yields the edits that write a definition in the program."""
    for found in own.imported(program):
        for node in _wanted(own, found.module, wanted):
            try:
                edits = _Definition(own, program, found, node).edits()
            except UnmarkedError:
                continue  # As in an f-string.
            if edits:
                yield edits


def _wanted(own: Modules, module: Program, wanted: Wanted) -> list[Any]:
    """Returns the definitions of a module that are wanted, or call one that is.

    A class with a base class is if one of both makes placeholders; both are then.
    """
    top = [n for n in module.tree.body if isinstance(n, _DEFINITIONS)]
    names = scopes.bound(module.tree.body) - {"*"}
    tf = [name for name in sorted(names) if own.origin(module, name) == "compat.v1"]
    kinds = Kinds(module, [*tf, "tf"][0])
    uses = {use: use.id for use in scopes.uses(module.tree, names)}
    called = {
        node.name: {uses.get(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
        for node in top
    }
    bases = {n.name: {literals.dotted(b) for b in getattr(n, "bases", [])} for n in top}
    found = {n.name for n in top if n.name not in set().union(*bases.values()) and wanted(kinds, n)}
    inputs = {node.name for node in top if any(map(kinds.is_input, ast.walk(node)))}
    for name, above in bases.items():
        if above & {*called} and {name, *above} & inputs:
            found |= {name, *above} & {*called}
    while True:
        more = {name for name in called if called[name] & found} - found
        if not more:
            return [node for node in top if node.name in found]
        found |= more


class _Definition:
    """A definition of a module, to be written in a program that imports it."""

    def __init__(self, own: Modules, program: Program, found: Import, node: Any) -> None:
        self.own, self.program, self.found, self.node = own, program, found, node
        self.top: list[Any] = program.tree.body
        self.taken = {n.id for n in program.nodes(ast.Name)} | scopes.bound(self.top)
        self.taken |= {n.arg for n in program.nodes(ast.arg)}
        inside = {*ast.walk(node)}
        self.local = {n.arg for n in inside if isinstance(n, ast.arg)}
        self.local |= {n.id for n in inside if isinstance(n, ast.Name) and _stores(n)}
        names = scopes.bound(found.module.tree.body) | _OF_MODULE
        self.uses = [n for n in scopes.uses(found.module.tree, names) if n in inside]
        self.needed = {n.id for n in self.uses} - {node.name}

    def edits(self) -> list[Edit]:
        """Returns the edits that write it there; none if it is not used, or has to stay."""
        program, module, statement = self.program, self.found.module, self.found.node
        word, places = self._used()
        if not places or not self._may_move():
            return []
        known, new = self._known(), {self.node.name: word}
        behind, more = [statement], []
        for name in sorted(self.needed):
            text, maker = known.get(self.own.origin(module, name), ("", None))
            if not text or (text != name and text.partition(".")[0] in self.local):
                text = scopes.free(name, self.taken | (self.local - {name}))
                self.taken.add(text)
                more.append((name, text))
            else:
                behind.append(maker)
            new[name] = text
        first, end = self.top.index(statement), 1 + max(map(self.top.index, behind))
        while isinstance([*self.top, None][end], _IMPORTS):
            end += 1
        if {*places} & {n for s in self.top[first:end] for n in ast.walk(s)}:
            return []
        edits = [Edit(*module.span(n), new[n.id]) for n in self.uses if new[n.id] != n.id]
        pieces = Pieces(module)
        edits.append(pieces.renamed(self.node, word))
        self.own.written[word] = f"{module.source.filename}:{self.node.name}"
        text = f"\n\n{pieces.take([self.node], edits, '')}\n"
        edits = [Edit(*program.span(n), word) for n in places if isinstance(n, ast.Attribute)]
        found = {(n, new_name): self._import(n, new_name) for n, new_name in more}
        lines = {f"{line}\n" for line in found.values() if line}
        names = [pair for pair, line in found.items() if not line]
        words = [n if n == new_name else f"{n} as {new_name}" for n, new_name in names]
        if words and not self._joins():
            lines.add(f"from {self.found.name} import {', '.join(words)}\n")
        edits += self._imports(words)
        for place, new_text in ((first, "".join(sorted(lines))), (end - 1, text)):
            position = program.text.find("\n", program.span(self.top[place])[1]) + 1
            edits.append(Edit(position, position, new_text))
        return edits

    def _used(self) -> tuple[str, list[Any]]:
        """Returns what the program calls it, and where."""
        name, tree, found = self.node.name, self.program.tree, self.found
        if found.word:
            roots = scopes.uses(tree, {found.word.partition(".")[0]})
            places = [
                n
                for n in self.program.nodes(ast.Attribute)
                if n.attr == name and literals.dotted(n.value) == found.word
                if any(root in ast.walk(n) for root in roots)
            ]
            return scopes.free(name, self.taken), places
        for alias in found.node.names:
            word = name if alias.name == "*" else alias.asname or alias.name
            makers = [s for s in self.top if word in scopes.bound([s])]
            if alias.name in (name, "*") and makers in ([], [found.node]):
                return word, scopes.uses(tree, {word})
        return name, []

    def _may_move(self) -> bool:
        """Whether it does the same in the program: it and what it needs have one value."""
        module, words = self.found.module, self.needed | {self.node.name}
        changed = {name for node in module.nodes(ast.Global) for name in node.names}
        made = [name for s in module.tree.body for name in scopes.bound([s])]
        stores = filter(_stores, self.program.nodes(ast.Attribute))
        is_set = self.found.word in {literals.dotted(n.value) for n in stores} - {""}
        fixed = not (words & changed or words & _OF_MODULE or is_set)
        return fixed and made.count(self.node.name) == 1

    def _known(self) -> dict[str, tuple[str, Any]]:
        """Returns what the program calls things by their origins, with the statements."""
        own, program, found = self.own, self.program, {}
        for statement in self.top:
            for name in scopes.bound([statement]) - {"*"}:
                found[own.origin(program, name)] = name, statement
        for other in own.imported(program):
            for name in scopes.bound(other.module.tree.body) - {"*"}:
                is_star = any(alias.name == "*" for alias in other.node.names)
                origin = own.origin(other.module, name)
                is_its = origin.startswith(f"{other.module.source.filename}:") or ":" not in origin
                if is_its and (other.word or is_star):
                    word = f"{other.word}.{name}" if other.word else name
                    found.setdefault(origin, (word, other.node))
        return found

    def _import(self, name: str, word: str) -> str:
        """Returns a statement that imports a name from elsewhere than the module, or ""."""
        module = self.found.module
        (statement, *_) = [s for s in module.tree.body if name in scopes.bound([s])]
        file, _, rest = self.own.origin(module, name).partition(":")
        renamed = "" if word == (rest or name) else f" as {word}"
        if file == "compat.v1":
            return f"import compat.v1 as {word}"
        if os.path.isabs(file):
            folder = os.path.dirname(os.path.abspath(self.program.source.filename))
            path = os.path.relpath(file, folder)[: -len(".py")].replace(os.sep, ".")
            if file == module.source.filename or path.startswith("."):
                return ""
            path = path[: -len(".__init__")] if path.endswith(".__init__") else path
            return f"from {path} import {rest}{renamed}" if rest else f"import {path} as {word}"
        for alias in getattr(statement, "names", []):
            if (alias.asname or alias.name) == name:
                renamed = "" if word == alias.name else f" as {word}"
                source = getattr(statement, "module", None)
                return f"{f'from {source} ' if source else ''}import {alias.name}{renamed}"
        return ""

    def _joins(self) -> bool:
        """Whether the statement can import more names of the module."""
        return not self.found.word and self.found.node.names[0].name != "*"

    def _imports(self, words: list[str]) -> list[Edit]:
        """Returns the edits by which the statement imports names in place of the definition."""
        node = self.found.node
        if not self._joins():
            return []
        names = [*(spelled(a) for a in node.names if a.name != self.node.name), *words]
        if not names and any(map(_acts, self.found.module.tree.body)):
            # For what it does when it is imported.
            return [Edit(*self.program.span(node), f"import {node.module}")]
        return [Pieces(self.program).importing(node, names)]


def _acts(statement: ast.stmt) -> bool:
    """Whether a statement of a module may do something elsewhere when the module is imported."""
    nodes = [*ast.walk(statement)]
    is_main = any(getattr(node, "id", "") == "__name__" for node in nodes)
    calls = any(isinstance(node, ast.Call) for node in nodes)
    return calls and not (is_main or isinstance(statement, _DEFINITIONS))


def _stores(node: Any) -> bool:
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
