"""Looks up a name of Python's library or of a package beside TensorFlow, and calls of it."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.checking.findings import FAILS, SERVED, Finding
from compat.scripts.names import packages


def find(name: str) -> Finding | None:
    """Returns what is known about "numpy.float", or None if it needs no finding."""
    key = name
    while key and key not in packages.GONE:
        key = key.rpartition(".")[0]
    if not key:
        return None
    entry = packages.GONE[key]
    if not entry.by:
        message = f"{name} is gone since {entry.gone}: {entry.note}"
        return Finding(FAILS, name, message, gone=entry.gone)
    if key != name and not entry.by.endswith(":"):
        return None  # An attribute of what serves it.
    by = entry.by.replace(":", ".").strip(".") + name[len(key) :]
    message = f"{name} is gone since {entry.gone}; compat run serves it with {by}"
    return Finding(SERVED, name, message, by, entry.gone)


def find_call(name: str, call: ast.Call) -> Iterator[Finding]:
    """Yields what is known about the arguments of a call."""
    renamed = packages.ARGUMENTS.get(name, {})
    for keyword in call.keywords:
        new = renamed.get(keyword.arg or "")
        if new is not None:
            how = f"passes it as {new}=" if new else "ignores it"
            yield Finding(SERVED, name, f"{name} took {keyword.arg}=; compat run {how}", name)
