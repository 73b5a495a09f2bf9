"""The modules of a script's own that it imports, and what names in them are."""

from __future__ import annotations

import ast
import os
from typing import Any, Iterator, Mapping, NamedTuple

import compat.scripts
from compat.scripts.names import table
from compat.scripts.rules.program import Program
from compat.scripts.source import conversion, literals, modules, scopes

_OWN = "compat.scripts."
_TENSORFLOW = {"tensorflow": "compat.v1", "compat._tensorflow.tf1": "compat.v1"}


class Import(NamedTuple):
    """A module that a program imports, or names of it."""

    node: Any  # The statement.
    word: str  # What the module is called, or "" where its names are imported.
    name: str  # By which it is imported, such as "models.cnn".
    module: Program


class Modules:
    """The modules of a script; their `texts` are programs of `compat.v1`, by their files."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self.written: dict[str, str] = {}  # The origins of definitions that the script has now.
        self._programs: dict[str, Program] = {}

    def imported(self, program: Program) -> Iterator[Import]:
        """Yields the modules of its own that a program imports at its top."""
        for node in program.tree.body:
            words: list[tuple[str, str]] = []
            if isinstance(node, ast.Import):
                words = [(alias.name, alias.asname or alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                front = f"{node.module}." if node.module else ""
                words = [(front + alias.name, alias.asname or alias.name) for alias in node.names]
                words += [(node.module, "")] if node.module else []
            for name, word in words:
                module = self.module(program, node, name)
                if module is not None:
                    yield Import(node, word, name, module)

    def module(self, program: Program, node: Any, name: str) -> Program | None:
        """Returns a module of a program's own, or of the tutorials, that a statement imports."""
        entry = table.NAMES.get(name[len("compat.v1.") :]) if name[:10] == "compat.v1." else None
        if entry is not None and entry.by.startswith(_OWN) and entry.by.endswith(":"):
            words = entry.by[len(_OWN) : -1].split(".")
            place = os.path.join(os.path.dirname(compat.scripts.__file__), *words)
            is_package = os.path.isdir(place)
            file = os.path.join(place, "__init__.py") if is_package else place + ".py"
            if file not in self._texts:
                self._texts[file] = conversion.read(file)[0].text
        else:
            path, level = program.source.filename, getattr(node, "level", 0)
            file = modules.find(name, path, level=level, exists=self._texts.__contains__)
        if not file:
            return None
        if file not in self._programs:
            source = conversion.Source(file, self._texts[file], False)
            self._programs[file] = Program(source, marked=True)
        return self._programs[file]

    def origin(self, program: Program, name: str) -> str:
        """Returns what a name at the top of a program is: "numpy", or "model.py:RATE" of its own.

        So are names in different modules the same.
        """
        file = program.source.filename
        own = self.written.get(name, "") if file not in self._programs else ""
        own = own or f"{file}:{name}"
        made: list[Any] = [s for s in program.tree.body if name in scopes.bound([s])]
        if len(made) != 1:
            return own
        (node,) = made
        if isinstance(node, ast.Assign):
            path = [*ast.walk(node.value)]
            root, _, rest = literals.dotted(node.value).partition(".")
            is_path = all(isinstance(n, (ast.Attribute, ast.Name, ast.Load)) for n in path)
            found = self.origin(program, root) if is_path and rest and root != name else ":"
            return own if ":" in found else f"{found}.{rest}"
        for alias in getattr(node, "names", []):
            if (alias.asname or alias.name.partition(".")[0]) == name:
                full = alias.name if alias.asname else name
                if isinstance(node, ast.ImportFrom):
                    full = f"{node.module or ''}.{alias.name}".lstrip(".")
                    module = self.module(program, node, node.module) if node.module else None
                    if module is not None and not self.module(program, node, full):
                        return self.origin(module, alias.name)
                module = self.module(program, node, full)
                return module.source.filename if module else _TENSORFLOW.get(full, full)
        return own
