"""Looks up a name of TensorFlow, of Python's library or of another package in the tables."""

from __future__ import annotations

import functools
import re
from typing import Callable, Iterator

from compat.scripts.names import packages, table
from compat.scripts.rules.findings import FAILS, GRAPH, SERVED, Finding
from compat.scripts.rules.known import FORMS
from compat.scripts.rules.rule import Found, Script

# Modules that were removed except for names in the table, and the release that removed them.
_GONE = {"contrib": "2.0", "examples": "2.0", "models": "1.0"}
_BY_PYPLOT = re.compile(r"^matplotlib\.pyplot\.cm\b")  # As `plt.cm`.
_GRAPH = {"InteractiveSession", "Session", "placeholder"}


@functools.lru_cache(maxsize=None)
def find(name: str, is_tensorflow: bool = True) -> Finding | None:
    """Returns what is known about "contrib.slim.conv2d", or None if it needs no finding."""
    if not is_tensorflow:
        return _of_package(_BY_PYPLOT.sub("matplotlib.cm", name))
    full, name, is_today = f"tf.{name}", table.plain(name), name != table.plain(name)
    if name in _GRAPH and not is_today:
        message = (
            "needs a graph, and TensorFlow 2 runs eagerly by default; compat run builds a graph"
        )
        return Finding("graph", GRAPH, full, f"{full} {message}", full, "2.0")
    key = table.nearest(name)
    if key is None:
        top = name.partition(".")[0]
        if top not in _GONE or top == name or table.under(name):
            return None
        return _failing(full, _GONE[top], "")
    entry = table.NAMES[key]
    if not entry.by:
        return _failing(full, entry.gone, entry.note)
    if key in FORMS or not entry.gone:
        return None  # The name is still there.
    module = table.importable(entry.by, "compat.v1." + key)
    by = module + name[len(key) :]
    how = f"serves it with {by}" if name == key else f"takes it from {module}"
    note = f" ({entry.note})" if entry.note else ""
    gone = f"{full} is gone since TensorFlow {entry.gone}"
    says = f"tf.compat.v1 never had {name}" if is_today else gone
    message = f"{says}; compat run {how}{note}"
    rule = "renamed" if entry.by.startswith("tf.") else "imports"
    return Finding(rule, SERVED, full, message, by, entry.gone)


def finder(rule: str) -> Callable[[Script], Iterator[Found]]:
    """Returns what finds the names that the tables have for a rule."""

    def find_names(script: Script) -> Iterator[Found]:
        for use in script.uses:
            finding = script.known[use.is_tensorflow, use.name] if use.call is None else None
            if finding is not None and finding.rule == rule:
                yield Found(use.part, use.node, use.spelled, finding)

    return find_names


def _of_package(name: str) -> Finding | None:
    key = name
    while key and key not in packages.GONE:
        key = key.rpartition(".")[0]
    if not key:
        return None
    entry = packages.GONE[key]
    if not entry.by:
        message = f"{name} is gone since {entry.gone}: {entry.note}"
        return Finding("unserved", FAILS, name, message, gone=entry.gone)
    if key != name and not entry.by.endswith(":"):
        return None  # An attribute of what serves it.
    by = table.importable(entry.by, "compat.v1.packages." + key) + name[len(key) :]
    message = f"{name} is gone since {entry.gone}; compat run serves it with {by}"
    return Finding("packages", SERVED, name, message, by, entry.gone)


def _failing(full: str, gone: str, why: str) -> Finding:
    since = f"gone since TensorFlow {gone}" if gone else "gone"
    message = (
        f"{full} is {since}: {why or 'nothing serves it'}; run the script on its original "
        "TensorFlow, or remove it"
    )
    return Finding("unserved", FAILS, full, message, gone=gone)
