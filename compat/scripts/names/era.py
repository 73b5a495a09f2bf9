"""Determines whether a script was written for TensorFlow 0.x or 1.x."""

from __future__ import annotations

import ast
from typing import Iterable

from compat.errors import UserError
from compat.scripts.names import table
from compat.scripts.source import literals
from compat.scripts.source.conversion import Source

CHOICES = ("auto", "0.x", "1.x")

# Names that exist in both, with different arguments.
_BOTH = ("compat.scripts.calls.arguments:", "compat.scripts.calls.classes:")

_TENSORFLOW = ("tensorflow", "tensorflow.compat.v1")

chosen = "auto"  # The value of `--era`; "auto" means what the script's names imply.
found = "1.x"  # What they imply.


def of_script() -> str:
    """Returns "0.x" or "1.x": the value of `--era`, or the era of the script's names."""
    return found if chosen == "auto" else chosen


def settle(call: str, old: str, new: str) -> str:
    """Returns the era of a call with arguments `old` in 0.x, `new` in 1.x; it has to be given."""
    if chosen == "auto":
        raise UserError(
            f"{call} took ({old}) in TensorFlow 0.x and ({new}) in 1.x, and neither shapes nor "
            "types tell which is meant; add --era=0.x or --era=1.x"
        )
    return chosen


def version() -> str:
    """Returns the script's `tf.__version__`: the last release of its era."""
    return "0.12.1" if of_script() == "0.x" else "1.15.5"


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
