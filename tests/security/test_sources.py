"""What our own code reads can do nothing, and comes by https: what ruff's rules S do not see."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator

import pytest

import compat

pytestmark = pytest.mark.once
ROOT = Path(compat.__file__).resolve().parents[1]
# The benchmarks are not in the wheel.
FOLDERS = [ROOT / name for name in ("compat", "experiments", "models", "benchmarks")]
# What they load can do anything.
BANNED = {"pickle", "cPickle", "marshal", "shelve", "joblib", "dill", "cloudpickle", "jsonpickle"}
# Gives Python 2's pickle to scripts that import it.
EXCEPTIONS = {"compat/scripts/view/python2_builtins.py": {"pickle"}}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_nothing_that_unpickles_is_imported() -> None:
    found = {path: imported(tree) & BANNED for path, tree in sources()}
    assert {path: names for path, names in found.items() if names} == EXCEPTIONS


def test_arrays_are_loaded_without_pickles() -> None:
    """But for a script's own, which are loaded as in its time; see docs/security.md."""
    calls = 0
    for path, tree in sources():
        if path == "compat/scripts/shims/arrays.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.dump(node.func).startswith(
                "Attribute(value=Name(id='np', ctx=Load()), attr='load'"
            ):
                calls += 1
                keywords = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
                assert keywords.get("allow_pickle") is False, f"{path}:{node.lineno}"
    assert calls


def test_no_address_beyond_loopback_is_without_encryption() -> None:
    for path, tree in sources():
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = getattr(node, "value", None)
            if isinstance(text, str) and id(node) not in docstrings:
                assert not re.search(r"\b(http|ftp)://(?!127\.0\.0\.1)\w", text), (path, text)
