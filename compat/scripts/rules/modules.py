"""A rule for the modules of the script itself, which names them in a remark.

A program that imports `compat.v1` shares a graph with its modules only if they import it as well.
"""

from __future__ import annotations

import ast
import os
from typing import Iterator

from compat.scripts.reading import conversion, modules, program
from compat.scripts.reading.program import Program, Remark
from compat.scripts.rules.rule import Rule


def _remark(script: Program) -> Iterator[Remark]:
    said: set[str] = set()
    for node in script.nodes(ast.Import, ast.ImportFrom):
        for file in modules.files(node, script.path):
            if file not in said and _has_changes(file):
                said.add(file)
                name = os.path.relpath(file, os.path.dirname(os.path.abspath(script.path)))
                yield Remark(
                    node,
                    f"{name} has to be migrated as well; migrate the folder as a whole, "
                    "python -m compat migrate FOLDER --output=NEW_FOLDER",
                )


def _has_changes(file: str) -> bool:
    found = program.of(*conversion.readable(file))
    return found.python2 or bool(found.of_tensorflow)


RULES = (
    Rule(
        "modules",
        "2.0",
        "modules of the script itself that use TensorFlow or Python 2 are named in a remark",
        "import reader",
        "# compat 1: reader.py has to be migrated as well; migrate the folder as a whole, "
        "python -m compat migrate FOLDER --output=NEW_FOLDER\n"
        "import reader",
        rewrite=_remark,
    ),
)
