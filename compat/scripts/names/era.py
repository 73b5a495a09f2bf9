"""The time that a script is from, where what a call means depends on it."""

from __future__ import annotations

import ast
from typing import Iterable

from compat.errors import UserError
from compat.scripts.names import table
from compat.scripts.source.conversion import Source

CHOICES = ("auto", "0.x", "1.x")

# Names that both times had, with other arguments.
_BOTH = ("compat.scripts.calls.arguments:", "compat.scripts.calls.classes:")

_chosen = "auto"
_found = "1.x"


def choose(option: str) -> None:
    """Takes `--era`; "auto" leaves it to what `found` was told."""
    global _chosen
    _chosen = option


def found(era: str) -> None:
    """Takes what the names in the script tell."""
    global _found
    _found = era


def of_script() -> str:
    """Returns "0.x" or "1.x", by the option or else by the script's names."""
    return _found if _chosen == "auto" else _chosen


def settle(call: str, old: str, new: str) -> str:
    """Returns the era of a call that its arguments do not tell.

    Args:
      call: the function, "tf.nn.nce_loss".
      old: its arguments in 0.x.
      new: its arguments in 1.x.

    Raises:
      UserError: no option was given.
    """
    if _chosen == "auto":
        raise UserError(
            f"{call} took ({old}) in TensorFlow 0.x and ({new}) in 1.x, and neither shapes nor "
            "types tell which is meant; say it with --era=0.x or --era=1.x"
        )
    return _chosen


def version() -> str:
    """Returns what the script sees as `tf.__version__`: the last release of its time."""
    return "0.12.1" if of_script() == "0.x" else "1.15.5"


def of_sources(parts: Iterable[Source]) -> str:
    """Returns "0.x" if a program uses a name that 1.0 took away, else "1.x"."""
    for part in parts:
        try:
            tree = part.tree()
        except (SyntaxError, UserError):
            continue  # Said when the part is run.
        known = _names_of_tensorflow(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                root, _, name = _dotted(node).partition(".")
                entry = table.NAMES.get(name) if root in known else None
                if entry is not None and entry.gone == "1.0" and not entry.by.startswith(_BOTH):
                    return "0.x"
    return "1.x"


def _names_of_tensorflow(tree: ast.Module) -> set[str]:
    """Returns what a program calls TensorFlow: "tf", as a rule."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "tensorflow"
    }


def _dotted(node: ast.expr) -> str:
    """Returns "tf.train.SummaryWriter" for that expression, "" for one that is no plain name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    return ".".join([node.id, *words]) if isinstance(node, ast.Name) else ""
