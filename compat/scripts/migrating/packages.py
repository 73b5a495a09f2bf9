"""Rules for what is imported beside TensorFlow: packages, and the script's own modules."""

from __future__ import annotations

import ast
import os
from typing import Iterator

from compat.errors import UserError
from compat.scripts.checking import call_rules, name_rules, syntax
from compat.scripts.checking.uses import Use
from compat.scripts.migrating import modules
from compat.scripts.migrating.program import Edit, Finders, Program, Remark, uses
from compat.scripts.names import packages
from compat.scripts.source import conversion


def _packages(program: Program) -> Iterator[Edit]:
    changed = {use.name.partition(".")[0] for use in program.other_uses if _has_changed(use)}
    for node in program.nodes(ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] in changed:
                yield program.import_from_v1(node, alias.name)
    for node in program.nodes(ast.ImportFrom):
        top = (node.module or "").partition(".")[0]
        if not node.level and top in changed:
            yield program.import_from_v1(node, top)


def _has_changed(use: Use) -> bool:
    """Whether a name is served by something else than today's package."""
    if use.call is not None:
        return any(call_rules.find(use, use.call, False))
    if use.name in packages.SIZED:
        return False  # Nearly all calls are right; NumPy refuses the others, and says why.
    finding = name_rules.find(use.name, False)
    return (finding is not None and bool(finding.served_by)) or use.name in packages.CHANGED


def _tostring(program: Program) -> Iterator[Edit]:
    for call in syntax.tostrings(program.tree):
        _, end = program.span(call.func)
        yield Edit(end - len("tostring"), end, "tobytes")


def _modules(program: Program) -> Iterator[Remark]:
    path = program.source.filename
    said: set[str] = set()
    for node in program.nodes(ast.Import, ast.ImportFrom):
        for file in modules.files(node, path):
            if file not in said and _is_old(file):
                said.add(file)
                name = os.path.relpath(file, os.path.dirname(os.path.abspath(path)))
                yield Remark(
                    node,
                    f"{name} has to be migrated as well; migrate the folder as a whole, "
                    "python -m compat migrate FOLDER --output=NEW_FOLDER",
                )


def _is_old(file: str) -> bool:
    try:
        parts = conversion.read(file)
        return any(p.python2 or any(u.is_tensorflow for u in uses(p.tree())) for p in parts)
    except (SyntaxError, UserError):
        return False  # Python reports it.


FINDERS: Finders = {
    "modules": _modules,
    "packages": _packages,
    "tostring": _tostring,
}
