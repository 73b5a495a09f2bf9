"""Rules for what is imported beside TensorFlow: packages, and the script's own modules."""

from __future__ import annotations

import ast
import os
from typing import Iterator

from compat.errors import UserError
from compat.scripts.checking import call_rules, name_rules
from compat.scripts.checking.uses import Use
from compat.scripts.migrating.program import Edit, Program, Remark, Rule, uses
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
    finding = name_rules.find(use.name, False)
    return (finding is not None and bool(finding.served_by)) or use.name in packages.CHANGED


def _tostring(program: Program) -> Iterator[Edit]:
    if any(node.name == "tostring" for node in program.nodes(ast.FunctionDef)):
        return
    for call in program.nodes(ast.Call):
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "tostring"
        if is_method and not call.args and not call.keywords:
            _, end = program.span(call.func)
            yield Edit(end - len("tostring"), end, "tobytes")


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


MODULES = Rule(
    "modules",
    "2.0",
    "modules of the script itself that use TensorFlow or Python 2 are named in a remark",
    "import reader",
    "# compat 1: reader.py has to be migrated as well; migrate the folder as a whole, "
    "python -m compat migrate FOLDER --output=NEW_FOLDER\n"
    "import reader",
    _modules,
)
RULES = (
    Rule(
        "packages",
        "NumPy 1.20, ...",
        "packages come from compat.v1.packages where a name is used that has changed",
        "import numpy as np\nx = np.float(1)",
        "import compat.v1.packages.numpy as np\nx = np.float(1)",
        _packages,
    ),
    Rule(
        "tostring",
        "NumPy 2.3",
        "the bytes of an array are tobytes()",
        "x = y.eval().tostring()",
        "x = y.eval().tobytes()",
        _tostring,
    ),
)
