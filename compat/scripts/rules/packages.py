"""A rule for changed names of other packages, which `compat.v1.packages` provides.

NumPy 1.20 deprecated `numpy.float` and its like, and later releases removed them and more; so did
Python's library, pandas, SciPy and scikit-learn. `compat.scripts.names.packages` has all names.
"""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.names import packages
from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, Program
from compat.scripts.reading.uses import Use
from compat.scripts.rules import names
from compat.scripts.rules.rule import SERVED, Finding, Found, Rule

_gone = names.finder("packages")


def _find(program: Program) -> Iterator[Found]:
    yield from _gone(program)
    for use in program.uses:
        for finding in _of_arguments(use):
            yield Found(use.node, use.spelled, finding)


def _of_arguments(use: Use) -> Iterator[Finding]:
    """Yields the findings for arguments of a call that its function no longer takes."""
    if use.call is None or use.is_tensorflow:
        return
    name = use.name
    for keyword in use.call.keywords:
        new = packages.ARGUMENTS.get(name, {}).get(keyword.arg or "")
        if new is not None:
            how = f"passes it as {new}=" if new else "ignores it"
            message = f"{name} took {keyword.arg}=; compat run {how}"
            yield Finding("packages", SERVED, name, message, name)
        values = packages.VALUES.get(name, {}).get(keyword.arg or "", {})
        old = literals.value(keyword.value)
        if isinstance(old, str) and old in values:
            message = f"{name} took {keyword.arg}={old!r}; compat run passes {values[old]!r}"
            yield Finding("packages", SERVED, name, message, name)


def _rewrite(program: Program) -> Iterator[Edit]:
    changed = {use.name.partition(".")[0] for use in program.uses if _has_changed(use)}
    for node in program.nodes(ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] in changed:
                yield program.import_from_v1(node, alias.name)
    for node in program.nodes(ast.ImportFrom):
        top = (node.module or "").partition(".")[0]
        if not node.level and top in changed:
            yield program.import_from_v1(node, top)


def _has_changed(use: Use) -> bool:
    """Whether a use needs `compat.v1.packages`, since the package itself has changed."""
    if use.is_tensorflow:
        return False
    if use.name.partition(".")[0] == "pandas":
        return True  # Methods of its frames have changed, and a call does not show its class.
    if use.call is not None:
        return any(_of_arguments(use))
    if use.name in packages.LENIENT:
        return False  # Nearly all calls are right. NumPy refuses the others with a clear error.
    found = names.finding(use)
    return (found is not None and bool(found.served_by)) or use.name in packages.CHANGED


RULES = (
    Rule(
        "packages",
        "NumPy 1.20, ...",
        "packages come from compat.v1.packages where a name is used that has changed",
        "import numpy as np\nx = np.float(1)",
        "import compat.v1.packages.numpy as np\nx = np.float(1)",
        find=_find,
        rewrite=_rewrite,
    ),
)
