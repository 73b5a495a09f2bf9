"""Determines whether a script was written for TensorFlow 0.x or 1.x."""

from __future__ import annotations

import ast
from typing import Iterable

from compat.errors import UserError
from compat.scripts.names import table
from compat.scripts.reading import literals
from compat.scripts.reading.conversion import Source

# Names that exist in both, with different arguments.
_BOTH = ("compat.scripts.shims.arguments:", "compat.scripts.shims.classes:")

_TENSORFLOW = ("tensorflow", "tensorflow.compat.v1")


def of_sources(parts: Iterable[Source]) -> str:
    """Returns "0.x" if a program uses a name that 1.0 removed, else "1.x"."""
    for part in parts:
        try:
            nodes = list(ast.walk(part.tree()))
        except (SyntaxError, UserError):
            continue  # Reported when the part is run.
        imports = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        own = {alias.asname or alias.name for alias in imports if alias.name in _TENSORFLOW}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                root, _, name = literals.dotted(node).partition(".")
                entry = table.NAMES.get(table.plain(name)) if root in own else None
                if entry is not None and entry.gone == "1.0" and not entry.by.startswith(_BOTH):
                    return "0.x"
    return "1.x"
