"""The model of a script: what is parsed, what a name stands for, and which variables hold what."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path
from typing import Any

import pytest

from compat.scripts.reading import conversion, program, scopes
from compat.scripts.rules.sources import check

TEXT = """
import tensorflow as tf, numpy as np
from os import path as p
t = tf.train
def f():
    import pandas as pd
    return t.Saver, np.zeros, p.join, pd.read_csv, unknown.x
def g(np):
    return np.ones, pd.read_csv
"""


def read(text: str) -> program.Program:
    return program.of(conversion.from_text(text, "old.py"))


def test_name_stands_for_what_its_scope_imports() -> None:
    script = read(TEXT)
    names = [script.meaning(node) for node in script.nodes(ast.Attribute)]
    assert {"tensorflow.train.Saver", "numpy.zeros", "os.path.join"} < {*names}
    assert names.count("pandas.read_csv") == 1  # A function does not see the names of another.
    assert "numpy.ones" not in names  # A parameter hides the module.
    assert [use.name for use in script.uses if use.name.startswith("numpy.")] == ["numpy.zeros"]
    assert {"tensorflow", "numpy", "os", "pandas"} == script.modules


@pytest.mark.parametrize(
    ("text", "era"),
    [
        ("import tensorflow as tf\ntf.mul(1, 2)", "0.x"),
        ("from tensorflow.python.ops import seq2seq", "0.x"),  # 1.0 has it in tf.contrib.
        ("from tensorflow import mul as times\ntimes(1, 2)", "0.x"),
        ("import tensorflow as tf\ntf.multiply(1, 2)", "1.x"),
        ("class tf:\n  mul = 1\ntf.mul", "1.x"),
        ("x = (", "1.x"),
    ],
)
def test_era_is_that_of_the_names(text: str, era: str) -> None:
    pytest.importorskip("fissix")
    assert program.era([conversion.from_text(text, "old.py")]) == era


def test_values_are_followed_through_variables() -> None:
    nodes = [*ast.walk(ast.parse("a = 1.0\nb, c = a, 2\nself.d = b\na = 2.5\ne = 1.0\ne = 3"))]

    def is_float(value: Any, known: set[str]) -> bool:
        is_name = isinstance(value, ast.Name)
        return value.id in known if is_name else isinstance(ast.literal_eval(value), float)

    assert scopes.holding(nodes, is_float, every=True) == {"a", "b", "self.d"}
    assert scopes.holding(nodes, is_float) == {"a", "b", "self.d", "e"}


def test_check_parses_a_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.py"
    path.write_text(TEXT)
    parsed: list[str] = []
    original = builtins.compile

    def compile_(source: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        if source == TEXT:
            parsed.append(filename)
        return original(source, filename, *args, **kwargs)

    monkeypatch.setattr(builtins, "compile", compile_)
    check(str(path))
    check(str(path))
    assert parsed == [str(path)]
