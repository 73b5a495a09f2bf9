"""Rules for names: what is imported, also beside TensorFlow, and what has another name today."""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Iterator

from compat.errors import UserError
from compat.scripts.checking import call_rules, elements, name_rules, syntax
from compat.scripts.checking.findings import FAILS
from compat.scripts.checking.uses import Use
from compat.scripts.migrating.program import Edit, Finders, GiveUpError, Program, Remark, uses
from compat.scripts.names import packages, table
from compat.scripts.source import conversion, literals, modules

_V1 = "compat.v1"
_TODAY = "tensorflow.compat"
# `compat.v1` stands for both.
_TOP = re.compile(r"\btensorflow\b(\s*\.\s*compat\s*\.\s*v1\b)?")
# Some of what TensorFlow 2 has there alone.
_ONLY_V1 = re.compile(
    r"(app|contrib|flags|layers|logging|placeholder|(Interactive)?Session|get_variable|"
    r"global_variables_initializer|set_random_seed|variable_scope|"
    r"train\.(\w+Optimizer|Saver|Server|Supervisor|Monitored\w+|\w*global_step))\b"
)
_MODULE = re.compile(r"(?<![\w.])tensorflow\b((?:\s*\.\s*\w+)*)(\s+as\s+\w+)?")


def _imports(program: Program) -> Iterator[Edit]:
    is_today = not needs_v1(program)
    left = {id(use.node) for use in program.uses if use.imported and unserved(use)}
    for node in program.nodes(ast.Import, ast.ImportFrom):
        names = [node, *node.names]
        if len(node.names) == 1 and any(id(name) in left for name in names):
            continue  # The remark is about it.
        yield from _statement(program, node, is_today)
    for call in program.nodes(ast.Call):
        function = literals.dotted(call.func)
        if function.rpartition(".")[2] not in ("__import__", "import_module") or not call.args:
            continue
        module = literals.text(call.args[0])
        if not _is_old(module, is_today):
            continue
        if function == "__import__":
            raise GiveUpError(call, "__import__ returns the package `compat`; use import_module")
        start, end = program.span(call.args[0])
        yield Edit(start, end, _TOP.sub(_V1, program.text[start:end], 1))


def needs_v1(program: Program) -> bool:
    """Whether a program uses names or calls that `tf`, or `tf.compat.v1`, does not take."""
    for use in program.uses:
        if _ONLY_V1.match(use.name):
            return True
        if use.name != table.plain(use.name):
            found = [name_rules.find(use.name)]
            if use.call is not None:
                found = [*call_rules.find(use, use.call, program.is_0x)]
            if any(finding is not None and finding.kind is not FAILS for finding in found):
                return True
    return False


def _is_old(module: str, is_today: bool) -> bool:
    inside = (module + ".").startswith("tensorflow.")
    return inside and not (is_today and (module + ".").startswith(_TODAY + "."))


def _statement(program: Program, node: Any, is_today: bool) -> Iterator[Edit]:
    start, end = program.span(node)
    text = program.text[start:end]
    if isinstance(node, ast.ImportFrom):
        top = _TOP.search(text)
        if top is not None and not node.level and _is_old(node.module or "", is_today):
            yield Edit(start + top.start(), start + top.end(), _V1)
        return
    for found in _MODULE.finditer(text):
        below, alias = re.sub(r"\s", "", found[1]), found[2]
        if _is_old("tensorflow" + below, is_today):
            # `import tensorflow.contrib` binds the package, which finds its modules on access.
            new = f"{_V1}{below}{alias}" if alias else f"{_V1} as tensorflow"
            new = new.replace(_V1 + ".compat.v1", _V1, 1)
            yield Edit(start + found.start(), start + found.end(), new)


def unserved(use: Use) -> str:
    """Returns why nothing serves a name, or "" for one that is served or handled."""
    if use.guarded or use.call is not None:
        return ""
    finding = name_rules.find(use.name, use.is_tensorflow)
    return finding.message if finding is not None and finding.kind is FAILS else ""


def _unserved(program: Program) -> Iterator[Remark]:
    imported: set[str] = set()
    for use in [*program.uses, *program.other_uses]:
        why = unserved(use)
        if not why or any(f"{use.name}.".startswith(f"{module}.") for module in imported):
            continue  # Said once, at the import.
        if use.imported:
            imported.add(use.name)
        yield Remark(use.node, why)


def _renamed(program: Program) -> Iterator[Edit]:
    for use in program.uses:
        finding = None if use.imported or use.call else name_rules.find(use.name)
        key = table.nearest(table.plain(use.name))
        if finding is None or finding.rule != "renamed" or key is None:
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


def _packages(program: Program) -> Iterator[Edit]:
    changed = {use.name.partition(".")[0] for use in program.other_uses if _has_changed(use)}
    for node in program.nodes(ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] in changed:
                yield program.import_from_v1(node, alias.name)
    for node in program.nodes(ast.ImportFrom):
        top = (node.module or "").partition(".")[0]
        if not node.level and top in changed:
            yield program.import_from_v1(node, top)


def _has_changed(use: Use) -> bool:
    """Whether a name is served by something else than today's package."""
    if use.call is not None:
        return any(call_rules.find(use, use.call, False))
    if use.name in packages.SIZED:
        return False  # Nearly all calls are right; NumPy refuses the others, and says why.
    finding = name_rules.find(use.name, False)
    return (finding is not None and bool(finding.served_by)) or use.name in packages.CHANGED


def _tostring(program: Program) -> Iterator[Edit]:
    for call in syntax.tostrings(program.tree):
        _, end = program.span(call.func)
        yield Edit(end - len("tostring"), end, "tobytes")


def _elements(program: Program) -> Iterator[Edit]:
    for node in elements.find(program.tree):
        _, end = program.span(node)
        yield Edit(end, end, ".item()")


def _modules(program: Program) -> Iterator[Remark]:
    path = program.source.filename
    said: set[str] = set()
    for node in program.nodes(ast.Import, ast.ImportFrom):
        for file in modules.files(node, path):
            if file not in said and _has_changes(file):
                said.add(file)
                name = os.path.relpath(file, os.path.dirname(os.path.abspath(path)))
                yield Remark(
                    node,
                    f"{name} has to be migrated as well; migrate the folder as a whole, "
                    "python -m compat migrate FOLDER --output=NEW_FOLDER",
                )


def _has_changes(file: str) -> bool:
    try:
        parts = conversion.read(file)
        return any(p.python2 or any(u.is_tensorflow for u in uses(p.tree())) for p in parts)
    except (SyntaxError, UserError):
        return False  # Python reports it.


FINDERS: Finders = {
    "imports": _imports,
    "renamed": _renamed,
    "unserved": _unserved,
    "modules": _modules,
    "packages": _packages,
    "tostring": _tostring,
    "elements": _elements,
}
