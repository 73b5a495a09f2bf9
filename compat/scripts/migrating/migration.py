"""Applies rules to a script, and returns the new program with remarks."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any, NamedTuple, Sequence

from compat.errors import UserError
from compat.scripts.names import table
from compat.scripts.reading import conversion, modules, program, python2
from compat.scripts.reading.program import Edit, GiveUpError, Program, Remark
from compat.scripts.rules.imports import needs_v1
from compat.scripts.rules.rule import Rule

REMARK = "# compat {number}: {text}"
_REMARK = re.compile(r"[ \t]*# compat (\d+): (.*)")
_MODULE = "compat.v1"
_ERA = "from compat.v1 import era_0x  # As before TensorFlow 1.0, for what depends on it.\n"
_PYTHON2 = f"from compat.v1 import {python2.MODULE}\n"
_NOT_OURS = (
    "it is not written in Python 3, and left, since it does not use TensorFlow; convert it, for "
    "example by fissix -w"
)
# Modules whose functions depend on the era of the script.
_OF_ERA = (
    "compat.contrib.era:",
    "compat.contrib.tutorials.",
    "compat.contrib.learn.",
)


class Migrated(NamedTuple):
    """The result of applying the rules to a script; `text` is the old text if nothing changes."""

    text: str
    counts: dict[str, int]  # Lines that are rewritten or have a remark, by rule.
    remarks: list[tuple[int, str]]  # Line in the new text, and a task that is left to the user.
    left: list[tuple[int, str]]  # Line in the old text, and why a rule left it as it is.
    is_changed: bool = True
    was_migrated: bool = False


def migrate(
    source: conversion.Source, rules: Sequence[Rule], is_imported: bool = False
) -> Migrated:
    """Returns the script as a program on `compat.v1`.

    A script without TensorFlow is left as it is, unless `is_imported` says that a script with
    TensorFlow imports it, or that it imports one. Then it is migrated to Python 3 and to the
    current releases of other packages.

    Raises:
      SyntaxError: the script is neither Python 3 nor Python 2.
      UserError: the new program would have wrong syntax, or a name that it needs is taken.
    """
    if "tensorflow" not in source.text and _MODULE not in source.text:
        return _module(source, rules) if is_imported else _without_tensorflow(source)
    with conversion.deep(source.filename):
        script = _program(source)
        if _is_migrated(script):
            return _unchanged(source, remarks=remarks_in(source.text), was_migrated=True)
        if not script.of_tensorflow:
            return _module(source, rules) if is_imported else _without_tensorflow(source)
        return _apply(script, rules)


def _module(source: conversion.Source, rules: Sequence[Rule]) -> Migrated:
    """Returns a module without TensorFlow, migrated to Python 3 and current packages."""
    try:
        with conversion.deep(source.filename):
            found = _apply(_program(source), rules)
    except SyntaxError:  # Python reports it.
        return _without_tensorflow(source)
    return found if found.is_changed else _without_tensorflow(source)


def _program(source: conversion.Source) -> Program:
    relative = source.python2 and modules.is_in_package(source.filename)
    return program.of(source, relative=relative)


def _unchanged(source: conversion.Source, **more: Any) -> Migrated:
    return Migrated(
        source.text, **{"counts": {}, "remarks": [], "left": [], **more}, is_changed=False
    )


def _without_tensorflow(source: conversion.Source) -> Migrated:
    return _unchanged(source, remarks=[(1, _NOT_OURS)] if source.python2 else [])


def _apply(script: Program, rules: Sequence[Rule]) -> Migrated:
    edits: list[Edit] = []
    remarks: list[Remark] = []
    counts: dict[str, int] = {}
    left: list[tuple[int, str]] = []
    for rule in rules:
        try:
            found = list(rule.rewrite(script))
            new = [item for item in found if isinstance(item, Edit)]
            _check_apart(script, edits, new)
        except GiveUpError as error:
            line, why = getattr(error.node, "lineno", 1), f"rule {rule.id} left the file: {error}"
            if rule.optional:
                left.append((line, f"{why}; compat.v1 takes it as it is"))
            else:
                remarks.append(Remark(error.node, f"{why}; write it plainly and migrate it again"))
            continue
        if found:
            places = [
                item.start if isinstance(item, Edit) else script.line_start(item.node)
                for item in found
            ]
            counts[rule.id] = len({script.text.count("\n", 0, place) for place in places})
        edits += new
        remarks += [item for item in found if isinstance(item, Remark)]
    is_today = any(f"{use.name}.".startswith("compat.v1.") for use in script.of_tensorflow)
    is_today = is_today and not needs_v1(script)
    if script.python2 and not counts:
        counts["python2"] = len({*script.text.split("\n")} - {*script.sources[0].text.split("\n")})
    # A program that names `tf.compat.v1` was written for TensorFlow 2: if only its imports would
    # change, it stays as it is.
    if not remarks and not set(counts) - ({"imports"} if is_today else set()):
        return _unchanged(script.sources[0], left=left)
    # Imports and comments stand before text that a rule inserts at the same place.
    text = script.edited([*_head(script), *comments(script, remarks), *edits])
    check(script, text, "write it plainly, or leave rules out with --skip")
    return Migrated(text, counts, remarks_in(text), left)


def check(script: Program, text: str, remedy: str) -> None:
    """Raises a `UserError`, whose message ends with `remedy`, if a new text has wrong syntax."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = conversion.parse(text, script.path)
            compile(tree, script.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise UserError(
            f"{script.path} would become wrong in line {error.lineno} ({error.msg}); {remedy}"
        ) from None


def _is_migrated(script: Program) -> bool:
    for node in script.nodes(ast.Import, ast.ImportFrom):
        names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        if any(f"{name}.".startswith(_MODULE + ".") for name in names):
            return True
    return False


def _check_apart(script: Program, edits: Sequence[Edit], new: Sequence[Edit]) -> None:
    """Raises GiveUpError if one of the `new` edits overlaps another edit."""
    ordered = sorted([*edits, *new], key=lambda edit: edit[:2])
    for before, after in zip(ordered, ordered[1:]):
        if after.start < before.end:
            raise GiveUpError(script.trees[0].body[0], "it meets what another rule rewrites")


def _head(script: Program) -> list[Edit]:
    """Returns an edit that adds imports of `python2` and `era_0x`, if the program needs them."""
    lines = _PYTHON2 if script.python2 else ""
    if lines and python2.MODULE in {node.id for node in script.nodes(ast.Name)}:
        raise UserError(
            f"{script.path} has a name {python2.MODULE!r}, which the migrated program "
            "needs for compat.v1.python2; rename it"
        )
    keys = (table.nearest(use.name) for use in script.of_tensorflow)
    if script.is_0x and any(table.NAMES[key].by.startswith(_OF_ERA) for key in keys if key):
        lines += _ERA
    start = script.head()
    return [Edit(start, start, lines)] if lines else []


def comments(script: Program, remarks: Sequence[Remark]) -> list[Edit]:
    """Returns edits that add the remarks as numbered comments, each above its statement."""
    placed: dict[tuple[int, str], None] = {}
    for remark in remarks:
        placed[script.line_start(remark.node), remark.text] = None
    edits = []
    for number, (start, text) in enumerate(sorted(placed), 1):
        comment = REMARK.format(number=number, text=text)
        blanks = script.text[script.text.rfind("\n", 0, start) + 1 : start]
        edits.append(Edit(start, start, f"{comment}\n{blanks}"))
    return edits


def remarks_in(text: str) -> list[tuple[int, str]]:
    """Returns the line number and the text of each remark in a migrated program."""
    found = ((n, _REMARK.fullmatch(line)) for n, line in enumerate(text.split("\n"), 1))
    return [(number, match[2]) for number, match in found if match]
