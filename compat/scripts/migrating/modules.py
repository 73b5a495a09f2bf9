"""A rule for a script's own modules, which may need to be migrated as well."""

from __future__ import annotations

import ast
import os
from typing import Iterator

from compat.errors import UserError
from compat.scripts.migrating.program import Program, Remark, Rule, uses
from compat.scripts.source import conversion


def _modules(program: Program) -> Iterator[Remark]:
    here = os.path.dirname(os.path.abspath(program.source.filename))
    said: set[str] = set()
    for node in program.nodes(ast.Import, ast.ImportFrom):
        for file in _files(node, here):
            if file not in said and os.path.isfile(file) and _is_old(file):
                said.add(file)
                name = os.path.relpath(file, here)
                yield Remark(
                    node,
                    f"{name} has to be migrated as well; migrate the folder as a whole, "
                    "python -m compat migrate FOLDER --output=NEW_FOLDER",
                )


def _files(node: ast.Import | ast.ImportFrom, here: str) -> Iterator[str]:
    """Yields where the modules that a statement imports may be, from the script's folder on."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        here = os.path.join(here, *[os.pardir] * (node.level - 1))
        module = node.module or ""
        names = [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]
    for name in filter(None, names):
        path = os.path.normpath(os.path.join(here, *name.split(".")))
        yield from (path + ".py", os.path.join(path, "__init__.py"))


def _is_old(file: str) -> bool:
    try:
        parts = conversion.read(file)
        return any(p.python2 or any(u.is_tensorflow for u in uses(p.tree())) for p in parts)
    except (SyntaxError, UserError):
        return False  # Python reports it.


RULES = (
    Rule(
        "modules",
        "2.0",
        "modules of the script itself that use TensorFlow or Python 2 are named in a remark",
        "import reader",
        "# compat 1: reader.py has to be migrated as well; migrate the folder as a whole, "
        "python -m compat migrate FOLDER --output=NEW_FOLDER\n"
        "import reader",
        _modules,
    ),
)
