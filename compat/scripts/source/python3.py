"""Converts Python 2 source to Python 3 by the package fissix, without two errors of its own."""

from __future__ import annotations

import functools
import re
from typing import Any

from compat.errors import UserError

_LEFT_OUT = ("fix_imports2", "fix_asserts", "fix_paren")
# `from . import x` for a sibling x, which fails in a script whose folder is a package.
_RELATIVE = "fix_import"
_SORTS = ("cmp", "key", "reverse")


@functools.lru_cache(maxsize=16)  # Slow, and called more than once.
def converted(text: str, filename: str, relative: bool = False) -> str:
    """Returns Python 2 source as Python 3, by request with relative imports of siblings.

    Raises:
      SyntaxError: it is neither.
    """
    try:
        from fissix import refactor
    except ImportError:
        raise UserError(
            f"script {filename} is written in Python 2, and the package fissix, which converts it, "
            "is not installed; pip install 'compat-experiments[scripts]'"
        ) from None
    # In Python 2 a tab advances to the next multiple of eight columns.
    spaced = re.sub(r"(?m)^[ \t]+", lambda indent: indent[0].expandtabs(8), text)
    try:
        done = _refactoring(refactor, relative).refactor_string(
            spaced.rstrip("\n") + "\n", filename
        )
    except RecursionError:
        raise
    except Exception as error:
        where = getattr(error, "context", (None, (None, None)))[1][0]
        message = f"neither Python 3 nor Python 2: {error}"
        raise SyntaxError(message, (filename, where, None, None)) from None
    return str(done)


@functools.lru_cache(maxsize=None)
def _refactoring(refactor: Any, relative: bool) -> Any:
    names = refactor.get_fixers_from_package("fissix.fixes")
    left_out = _LEFT_OUT if relative else (*_LEFT_OUT, _RELATIVE)
    kept = [name for name in names if name.rpartition(".")[2] not in left_out]
    tool = refactor.RefactoringTool(kept)
    for fixer in (*tool.pre_order, *tool.post_order):
        if type(fixer).__name__ == "FixSorted":
            fixer.transform = functools.partial(_sorted, fixer.transform)
    return tool


def _sorted(transform: Any, node: Any, found: Any) -> Any:
    """Converts calls of `sort` with a function that compares, not those of arrays and frames."""
    arguments = found.get("func_arg") or found.get("func_args") or []
    first = str(arguments[0]).strip() if arguments else ""
    keywords = [str(a.children[0]).strip() for a in arguments if "=" in map(str, a.children)]
    if first[:1] in "[{\"'0123456789-" and first or set(keywords) - set(_SORTS):
        return None
    return transform(node, found)
