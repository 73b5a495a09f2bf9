"""Rules for NumPy and other packages, whose names have changed as well."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts import imports
from compat.scripts.migrating.program import Edit, Program
from compat.scripts.migrating.rule import Rule
from compat.scripts.names import libraries
from compat.scripts.source import literals


def _names(program: Program) -> Iterator[Edit]:
    names = {literals.dotted(node) for node in program.nodes(ast.Attribute)}
    for node in program.nodes(ast.Import):
        for alias in node.names:
            local = alias.asname or alias.name
            if any(f"{local}.{name}" in names for name in libraries.removed(alias.name)):
                yield program.import_from_v1(node, alias.name)


def _modules(program: Program) -> Iterator[Edit]:
    for node in program.nodes(ast.ImportFrom):
        package = (node.module or "").partition(".")[0]
        if node.level or package not in imports.VIEWED:
            continue
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if any(map(libraries.has_moved, names)):
            yield program.import_from_v1(node, package)


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
        "numpy",
        "NumPy 1.24, 2.0",
        "a package of which a removed name is used comes from compat.v1",
        "import numpy as np\nx = np.float(1)",
        "import compat.v1.numpy as np\nx = np.float(1)",
        _names,
    ),
    Rule(
        "moved",
        "scikit-learn 0.20",
        "modules that other packages have moved come from compat.v1",
        "from sklearn.cross_validation import train_test_split",
        "from compat.v1.sklearn.cross_validation import train_test_split",
        _modules,
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
