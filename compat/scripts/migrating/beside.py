"""The modules of a script, migrated with it and written beside its new program."""

from __future__ import annotations

import ast
import os
from typing import Any, Callable, Mapping, NamedTuple

from compat.scripts.migrating.migration import Migrated
from compat.scripts.reading import conversion, modules
from compat.scripts.reading import program as reading
from compat.scripts.reading.program import Edit

_SUFFIXES = "_v1", "_compat_v1"
_IMPORTS = (ast.Import, ast.ImportFrom)


class Beside(NamedTuple):
    """The migrated modules that a script imports.

    A module that changes gets a new file, such as "model_v1.py" for "model.py", because the old
    script still imports the old one.
    """

    root: str  # The folder of the script.
    found: Mapping[str, Migrated]  # The migrated modules, by old file.
    # The new file of each module that changes, by old file.
    names: Mapping[str, str]
    suffix: str

    def texts(self) -> dict[str, str]:
        """Returns the texts of the new modules by file, as if written beside the old ones."""
        return {self.names.get(f, f): self.renamed(f, m.text) for f, m in self.found.items()}

    def targets(self, output: str) -> dict[str, str]:
        """Returns the paths of the new files by the modules' old files, for a program at `output`.

        The new files keep their places relative to the program. A module that keeps its path is
        left out, since its file must not be overwritten.
        """
        folder = os.path.dirname(os.path.abspath(output))
        new = {file: self.names.get(file, file) for file in self.found}
        places = {f: os.path.join(folder, os.path.relpath(n, self.root)) for f, n in new.items()}
        return {file: place for file, place in places.items() if file != place}

    def renamed(self, path: str, text: str) -> str:
        """Returns `text`, the program of the old file `path`, with imports of the new modules."""
        if conversion.is_python2(text, path):
            return text  # It does not use TensorFlow, so it is still Python 2, with a remark.
        program = reading.of(conversion.Source(path, text, False))
        edits = []
        for node in program.nodes(ast.Import, ast.ImportFrom):
            new = self._statement(node, path)
            if new:
                edits.append(Edit(*program.span(node), new))
        return program.edited(edits)

    def _statement(self, node: Any, path: str) -> str:
        """Returns the import `node` with the names of new modules, or "" if it imports none."""
        level = getattr(node, "level", 0)
        module = getattr(node, "module", None) or ""
        is_from_new = bool(module) and self._is_new(module, path, level)
        words, is_new = [], is_from_new
        for alias in node.names:
            name = alias.name
            if not is_from_new and self._is_new(f"{module}.{name}".lstrip("."), path, level):
                name, is_new = f"{name}{self.suffix} as {alias.asname or name}", True
            elif alias.asname:
                name = f"{name} as {alias.asname}"
            words.append(name)
        names = ", ".join(words)
        if isinstance(node, ast.ImportFrom):
            source = f"{'.' * level}{module}{self.suffix * is_from_new}"
            names = f"from {source} import {names}"
        else:
            names = f"import {names}"
        return names if is_new else ""

    def _is_new(self, name: str, path: str, level: int) -> bool:
        return modules.find(name, path, self.root, level) in self.names


def beside(script: str, migrate: Callable[[str], Migrated]) -> Beside | None:
    """Migrates the modules that a script imports, each by `migrate(file)`.

    A module that changes gets a new name, since the old script still imports the old module.

    Returns:
      The migrated modules; None if a changed one cannot be renamed. This is so for the
      `__init__.py` of a package, and for a module that is imported by `import package.module`,
      since the program then uses its full name.
    """
    root = os.path.dirname(os.path.abspath(script))
    found = {file: migrate(file) for file in modules.imported(script)}
    uses = {path: modules.imports(path) for path in (script, *found)}
    changed = {file for file, migrated in found.items() if migrated.is_changed}
    while True:  # A module that imports a changed one changes as well.
        more = {
            file
            for file in found.keys() - changed
            if any(changed & {*modules.files(node, file, root)} for node in uses[file])
        }
        if not more:
            break
        changed |= more
    for path, nodes in uses.items():
        for node in nodes:
            names = [a.name for a in node.names if "." in a.name and not a.asname]
            if any(modules.find(name, path, root) in changed for name in names):
                return None
    if any(os.path.basename(file) == "__init__.py" for file in changed):
        return None
    for suffix in _SUFFIXES:
        new = {file: f"{file[: -len('.py')]}{suffix}.py" for file in changed}
        # A new name may be taken: a script may have an `inception_v1.py` of its own.
        if not found.keys() & set(new.values()):
            break
    return Beside(root, found, new, suffix)
