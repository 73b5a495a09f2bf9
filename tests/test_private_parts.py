"""Private parts of TensorFlow are asked for in one place, `compat/_tensorflow/private.py`.

Read from the source: a private name that a module asks another object for is a class's of ours if
this module, or one that it imports, defines it; else it is taken for TensorFlow's.
"""

from __future__ import annotations

import ast
import functools
import re
import runpy
from pathlib import Path
from typing import Iterator

import pytest

pytestmark = pytest.mark.once
ARCHITECTURE = runpy.run_path(str(Path(__file__).with_name("test_architecture.py")))
SOURCES = ARCHITECTURE["SOURCES"]
PLACE = "compat._tensorflow.private"
MODULES = [module for module in SOURCES if module != PLACE]
INSIDE = "tensorflow.python."
# A docstring's clause about a release that has removed or changed a private part.
WORDS = "gone|removed|missing|lacks|change|another|other|cannot|neither|none|unknown"
CASE = re.compile(rf"\b(where|if)\b[^.;]*\b({WORDS})\b")
# Of whose names each module is free, and why.
FREE = {
    "compat._tensorflow.embeddings": "a module in which it replaces a function",
    "compat._tensorflow.internals": "names that newer releases moved, which it puts back",
    "compat.estimator.": "the package tensorflow-estimator, which is not developed any more",
    "compat.scripts.shims.variable_tracking": "layers of Keras 3, whose variables it adds to",
    "compat.contrib.": "parts of tf.contrib, which extended private classes as well",
    "compat.scripts.names.": "names that old scripts import; those that are gone have a message",
    "compat.scripts.proving.recorder.": "runs on other releases, without this package",
}
# Of Python, which documents them, and an attribute of nodes of graphs.
KNOWN = {"_asdict", "_class", "_exit", "_fields", "_getframe", "_make", "_replace"}
BY_NAME = ("getattr", "hasattr", "setattr", "delattr")


@functools.lru_cache(maxsize=None)
def nodes(module: str) -> list[ast.AST]:
    return list(ast.walk(ARCHITECTURE["parse"](module)))


def text(node: ast.AST) -> str:
    """Returns a constant text; empty for anything else. Python 3.7 calls its value `s`."""
    value = vars(node).get("value", vars(node).get("s"))
    return value if isinstance(value, str) else ""


def is_own(node: ast.AST) -> bool:
    """Tells whether an expression is `self`, `cls` or `super()`.

    What a class of TensorFlow's shows to those that extend it is theirs as well.
    """
    return getattr(getattr(node, "func", node), "id", "") in ("self", "cls", "super")


def asked_for(module: str) -> Iterator[str]:
    """Yields the names of attributes that a module reads or sets, except of `self`."""
    for node in nodes(module):
        if isinstance(node, ast.Attribute) and not is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("get", "pop"):
                yield text(node.args[0])
            elif called in BY_NAME and not is_own(node.args[0]):
                yield text(node.args[1])


@functools.lru_cache(maxsize=None)
def defined(module: str) -> set[str]:
    """Returns the names that a module defines, itself, in its classes and on `self`."""
    found = set()
    for node in nodes(module):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            is_ours = isinstance(node, ast.Name) or is_own(getattr(node, "value", node))
            found.add(getattr(node, "id", getattr(node, "attr", "")) if is_ours else "")
    return found


def foreign(module: str) -> list[str]:
    """Returns the private names of others that a module asks for, and their private modules."""
    found = {name for name in asked_for(module) if name[:1] == "_" and name[:2] != "__"}
    found -= KNOWN | defined(module)
    if found:
        found.difference_update(*map(defined, ARCHITECTURE["imports"](module) & set(SOURCES)))
    inside = {text(node) for node in nodes(module) if text(node).startswith(INSIDE)}
    return sorted(found | inside)


def test_private_parts_are_asked_for_in_one_place() -> None:
    found = {module: foreign(module) for module in MODULES if not module.startswith(tuple(FREE))}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize("part", FREE)
def test_what_is_free_needs_to_be(part: str) -> None:
    assert any(foreign(module) for module in MODULES if module.startswith(part))


def test_each_says_what_happens_where_it_is_gone() -> None:
    functions = [n for n in ARCHITECTURE["parse"](PLACE).body if isinstance(n, ast.FunctionDef)]
    texts = {f.name: " ".join((ast.get_docstring(f) or "").lower().split()) for f in functions}
    silent = [name for name, text in texts.items() if not CASE.search(text)]
    assert silent == []
