"""Rules for names that releases since 2016 removed or moved.

TensorFlow 1.0: "`tf.mul`, `tf.sub` and `tf.neg` are deprecated in favor of `tf.multiply`,
`tf.subtract` and `tf.negative`", and more of the kind. TensorFlow 2.0 removed `tf.contrib`, and
runs operations at once ("eager execution") unless a program switches that off. The tables in
`compat.scripts.names` have all names.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Any, Iterator

from compat.scripts.names import packages, table
from compat.scripts.reading.program import Edit, GiveUpError, Program, Remark
from compat.scripts.reading.uses import Use
from compat.scripts.rules.calls import FORMS
from compat.scripts.rules.rule import FAILS, GRAPH, SERVED, Finder, Finding, Found, Rule

# Modules that were removed except for names in the table, and the release that removed them.
_GONE = {"contrib": "2.0", "examples": "2.0", "models": "1.0"}
_BY_PYPLOT = re.compile(r"^matplotlib\.pyplot\.cm\b")  # As `plt.cm`.
_GRAPH = {"InteractiveSession", "Session", "placeholder"}
_NO_GRAPH = {"compat.v1.disable_eager_execution", "compat.v1.disable_v2_behavior"}


@functools.lru_cache(maxsize=None)
def find(name: str, is_tensorflow: bool = True) -> Finding | None:
    """Returns the finding for a name, such as "contrib.slim.conv2d", or None if it needs none."""
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
        return None  # TensorFlow still has the name.
    module = table.importable(entry.by, "compat.v1." + key)
    by = module + name[len(key) :]
    how = f"serves it with {by}" if name == key else f"takes it from {module}"
    note = f" ({entry.note})" if entry.note else ""
    gone = f"{full} is gone since TensorFlow {entry.gone}"
    says = f"tf.compat.v1 never had {name}" if is_today else gone
    message = f"{says}; compat run {how}{note}"
    rule = "renamed" if entry.by.startswith("tf.") else "imports"
    return Finding(rule, SERVED, full, message, by, entry.gone)


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
        return None  # `name` is an attribute of an object that is served.
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


def finding(use: Use) -> Finding | None:
    """Returns the finding for the name of a use, or None if it needs none.

    A use that is a call has none: the name in the call is another use, which has the finding.
    """
    return find(use.name, use.is_tensorflow) if use.call is None else None


def finder(rule: str) -> Finder:
    """Returns a function that yields the uses whose names have findings of a rule."""

    def find_names(program: Program) -> Iterator[Found]:
        for use in program.uses:
            found = finding(use)
            if found is not None and found.rule == rule:
                yield Found(use.node, use.spelled, found)

    return find_names


def _rename(program: Program) -> Iterator[Edit]:
    for use in program.of_tensorflow:
        found = None if use.imported else finding(use)
        key = table.nearest(table.plain(use.name))
        if found is None or found.rule != "renamed" or key is None:
            continue
        node: Any = use.node
        for _ in range(table.plain(use.name).count(".") - key.count(".")):
            node = node.value
        start, end = program.span(node)
        spelled = program.text[start:end]
        new = table.NAMES[key].by[len("tf.") :]
        if isinstance(node, ast.Name) and spelled == key and "." not in new:  # Imported by `*`.
            yield Edit(start, end, new)
            continue
        root = spelled[: -len(key)]
        if not spelled.endswith("." + key) or not re.fullmatch(r"[\w.]+", root):
            raise GiveUpError(node, f"{spelled} does not say where it is from")
        yield Edit(start, end, root + new)


def is_unserved(use: Use) -> bool:
    """Whether the name of a use does not work any more, not even under `compat run`."""
    found = finding(use)
    return found is not None and found.kind is FAILS


def _find_unserved(program: Program) -> Iterator[Found]:
    """Yields the uses of names that have no replacement.

    If a whole module has none, only its import is yielded, not each use of its names. A use is
    left out if the program handles the error that a missing name raises.
    """
    imported: set[str] = set()
    for use in program.uses:
        found = finding(use)
        if found is None or found.kind is not FAILS:
            continue
        if any(f"{use.name}.".startswith(f"{module}.") for module in imported):
            continue
        if use.imported:
            imported.add(use.name)
        if not use.guarded:
            yield Found(use.node, use.spelled, found)


def _remark_unserved(program: Program) -> Iterator[Remark]:
    for node, _, found in _find_unserved(program):
        yield Remark(node, found.message)


_graph = finder("graph")


def _find_graph(program: Program) -> Iterator[Found]:
    """Yields the first use that needs a graph, unless the program switches eager execution off."""
    first = next(_graph(program), None)
    if first is not None and not any(use.name in _NO_GRAPH for use in program.uses):
        yield first


RULES = (
    Rule(
        "renamed",
        "1.0, 2.0",
        "names that have another name today",
        'tf.train.SummaryWriter("logs", tf.mul(x, y))',
        'tf.summary.FileWriter("logs", tf.multiply(x, y))',
        optional=True,
        find=finder("renamed"),
        rewrite=_rename,
    ),
    Rule(
        "unserved",
        "1.0, 2.0",
        "names that nothing serves are left, with a remark",
        "tf.contrib.ffmpeg.decode_audio(x, y, z)",
        "# compat 1: tf.contrib.ffmpeg.decode_audio is gone since TensorFlow 2.0: TensorFlow "
        "removed its kernels; run the script on its original TensorFlow, or remove it\n"
        "tf.contrib.ffmpeg.decode_audio(x, y, z)",
        find=_find_unserved,
        rewrite=_remark_unserved,
    ),
    Rule(
        "graph",
        "2.0",
        "sessions and placeholders need a graph, which compat run builds",
        'tf.placeholder("float")',
        find=_find_graph,
    ),
)
