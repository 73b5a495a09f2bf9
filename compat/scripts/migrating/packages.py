"""Rules for Python's library, NumPy and other packages, whose names have changed as well."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.checking import library_rules
from compat.scripts.checking.uses import Use
from compat.scripts.migrating.program import Edit, Program, Rule
from compat.scripts.names import packages


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
        return any(library_rules.find_call(use.name, use.call))
    finding = library_rules.find(use.name)
    return (finding is not None and bool(finding.served_by)) or use.name in packages.CHANGED


def _tostring(program: Program) -> Iterator[Edit]:
    if any(node.name == "tostring" for node in program.nodes(ast.FunctionDef)):
        return
    for call in program.nodes(ast.Call):
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "tostring"
        if is_method and not call.args and not call.keywords:
            _, end = program.span(call.func)
            yield Edit(end - len("tostring"), end, "tobytes")


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
