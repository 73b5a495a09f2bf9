"""Functions that train, feed or read, written where a program calls them, also of its modules."""

from __future__ import annotations

import ast
import os
from typing import Any, Iterator, Mapping

import compat.scripts
from compat.scripts.migrating.program import Edit, Program
from compat.scripts.migrating.steps import inlining, plain
from compat.scripts.migrating.steps.inlining import Function
from compat.scripts.migrating.steps.kinds import TRAINS, Kinds, last
from compat.scripts.names import table
from compat.scripts.source import conversion, modules, scopes

_OWN = "compat.scripts."


def gathered(program: Program, tf: str, texts: Mapping[str, str]) -> Program:
    """Returns a program that trains, feeds and reads by itself.

    Its own modules, programs of `compat.v1`, are `texts`, by the files that it imports them from.
    """
    found = Modules(texts)
    program = found.with_imports(program)
    return inlining.inlined(program, tf, _wanted, lambda program: found.functions(program, tf))


def _wanted(program: Program, function: Function) -> bool:
    kinds = Kinds(function.program, function.tf)
    nodes = [*ast.walk(function.node)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(kinds.is_input(node) or last(node) in TRAINS for node in calls):
        return plain.is_part(program, function, kinds)
    if any(last(node) == "run" for node in calls):
        return False
    feeds = any(isinstance(node, ast.Dict) and _is_feed(node) for node in nodes)
    reads = any(last(n) == "next_batch" and isinstance(n.func, ast.Attribute) for n in calls)
    return feeds or reads


def _is_feed(node: ast.Dict) -> bool:
    return bool(node.keys) and all(isinstance(key, (ast.Name, ast.Attribute)) for key in node.keys)


class Modules:
    """The modules whose functions a program calls; their `texts` are as for `gathered`."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self._programs: dict[str, Program] = {}

    def with_imports(self, program: Program) -> Program:
        """Returns a program that also imports what the functions that it imports use."""
        edits: list[Edit] = []
        for node, name, module in self._imported(program):
            if isinstance(node, ast.ImportFrom) and name is None:
                known = self._known(program, node, module)
                wanted = {alias.name for alias in node.names}
                functions = [f for f in _functions(module) if f.name in wanted and _builds(f)]
                used = {n for f in functions for n in _module_names(module, f)} - set(known)
                more = sorted(used - scopes.bound(program.tree.body) - _tensorflow(module))
                start, end = program.span(node)
                if more and node in program.tree.body:
                    line = f"from {node.module} import {', '.join(more)}\n"
                    place = program.text.find("\n", end) + 1 or len(program.text)
                    edits.append(Edit(place, place, line))
        return program.after(edits) if edits else program

    def functions(self, program: Program, tf: str) -> list[Function]:
        """Returns the functions of its modules that a program may call."""
        found: list[Function] = []
        for node, name, module in self._imported(program):
            own = _tensorflow(module)
            names = dict.fromkeys(own, tf)
            if name is None:
                names = {**self._known(program, node, module), **names}
            else:
                top = scopes.bound(module.tree.body) - own
                names.update((word, f"{name}.{word}") for word in top)
            aliases = {} if name else {a.name: a.asname or a.name for a in node.names}
            for function in _functions(module):
                path = aliases.get(function.name, "") if name is None else f"{name}.{function.name}"
                path = function.name if "*" in aliases else path
                if path:
                    found.append(Function(path, function, module, min(own, default="tf"), names))
        return found

    def _known(self, program: Program, node: Any, module: Program) -> dict[str, str]:
        """Returns what a program calls names of a module, of which it imports some."""
        top = scopes.bound(module.tree.body)
        if any(alias.name == "*" for alias in node.names):
            return {name: name for name in top}
        found: dict[str, str] = {}
        for other in program.nodes(ast.ImportFrom):
            if other.module == node.module and other.level == node.level:
                found.update((a.name, a.asname or a.name) for a in other.names)
        same = {_spelled(n) for n in program.nodes(ast.Import, ast.ImportFrom)}
        for other in module.nodes(ast.Import, ast.ImportFrom):
            if _spelled(other) in same:
                found.update((name, name) for name in scopes.bound([other]))
        return {name: word for name, word in found.items() if name in top}

    def _imported(self, program: Program) -> Iterator[tuple[Any, str | None, Program]]:
        """Yields imports, with the name of the module, or None where its names are imported."""
        path = program.source.filename
        for node in program.nodes(ast.Import, ast.ImportFrom):
            for alias in node.names:
                if isinstance(node, ast.Import):
                    module = self._module(node, alias.name, path)
                    if module is not None:
                        yield node, alias.asname or alias.name, module
                    continue
                module = self._module(node, f"{node.module or ''}.{alias.name}".lstrip("."), path)
                if module is not None:
                    yield node, alias.asname or alias.name, module
            if isinstance(node, ast.ImportFrom) and node.module:
                module = self._module(node, node.module, path)
                if module is not None:
                    yield node, None, module

    def _module(self, node: Any, name: str, path: str) -> Program | None:
        entry = table.NAMES.get(name[len("compat.v1.") :]) if name[:10] == "compat.v1." else None
        if entry is not None and entry.by.startswith(_OWN) and entry.by.endswith(":"):
            words = entry.by[len(_OWN) : -1].split(".")
            file = os.path.join(os.path.dirname(compat.scripts.__file__), *words) + ".py"
            if file not in self._texts:
                self._texts[file] = conversion.read(file)[0].text
        else:
            level = getattr(node, "level", 0)
            file = modules.find(name, path, level=level, exists=self._texts.__contains__)
        if not file:
            return None
        if file not in self._programs:
            source = conversion.Source(file, self._texts[file], False)
            self._programs[file] = Program(source, marked=True)
        return self._programs[file]


def _functions(module: Program) -> list[Any]:
    return [node for node in module.tree.body if isinstance(node, ast.FunctionDef)]


def _builds(function: ast.FunctionDef) -> bool:
    return any(last(n) in TRAINS for n in ast.walk(function) if isinstance(n, ast.Call))


def _module_names(module: Program, function: ast.FunctionDef) -> set[str]:
    top = scopes.bound(module.tree.body)
    inside = {n for s in function.body for n in ast.walk(s)}
    return {n.id for n in scopes.uses(module.tree, top) if n in inside}


def _tensorflow(module: Program) -> set[str]:
    """Returns the names of TensorFlow in a module."""
    found: set[str] = set()
    for node in module.nodes(ast.Import, ast.ImportFrom):
        for alias in node.names:
            name = f"{getattr(node, 'module', '')}.{alias.name}".lstrip(".")
            if name in ("compat.v1", "tensorflow", "compat._tensorflow.tf1"):
                found.add(alias.asname or alias.name)
    return found


def _spelled(node: Any) -> str:
    names = [(alias.name, alias.asname) for alias in node.names]
    return f"{type(node).__name__} {getattr(node, 'module', '')} {names}"
