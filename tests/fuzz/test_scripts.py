"""Scripts and notebooks that are read: to be checked, and to be run as Python 3."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.errors import UserError, one_line
from compat.scripts.clusters import task_arguments
from compat.scripts.reading import conversion, program
from compat.scripts.rules import formats, sources
from tests.fuzz.conftest import (
    CELLS,
    PYTHON2,
    PYTHON3,
    SCRIPT_TOKENS,
    WORKSHEETS,
    attempt,
    mutated,
    times,
    words,
)

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
# What the documents have between their fences, as somebody who copies too much has it.
PAGES = [*sorted((ROOT / "docs" / "seeds").glob("*.md")), ROOT / "docs" / "check.md"]
COPIED = [
    block.encode()
    for page in PAGES
    for block in re.findall(r"```\w+\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
]
SCRIPTS = st.one_of(
    mutated(PYTHON2, PYTHON3, tokens=SCRIPT_TOKENS),
    mutated(PYTHON3, *COPIED, tokens=SCRIPT_TOKENS),
    st.binary(max_size=60),
    st.lists(st.sampled_from(SCRIPT_TOKENS), max_size=8).map(b"".join),
)
MANY_HOSTS = b"x = [" + b'"pc-01:2222",' * 4000 + b"]"
MANY_CALLS = b"import tensorflow as tf;x = [" + b"tf.mul(1,2)," * 2500 + b"]"
NOTEBOOKS = mutated(
    CELLS,
    WORKSHEETS,
    tokens=[
        b"[" * 99_999,
        b"null",
        b"{}",
        b"3",
        b"\\ud800",
        b"\\u0000",
        b"\\n" * 9,
        b"\xef\xbb\xbf",
    ],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("scripts"))


def check(path: Path) -> None:
    """Checks a file, and what is said of it in each format."""
    findings = attempt(sources.check, str(path))
    assert isinstance(findings, list), findings
    for finding in findings:
        assert finding.line >= 1
        assert finding.column >= 1
        assert finding.message.isprintable(), finding
    assert len(formats.as_text(findings, 1).splitlines()) <= 2 * len(findings) + 2
    assert len(json.loads(formats.as_json(findings, 1))["findings"]) == len(findings)
    json.loads(formats.as_sarif(findings, 1))


def translate(path: Path) -> None:
    """Does what is done before a script is run."""
    parts = attempt(conversion.read, str(path))
    if isinstance(parts, UserError):
        return
    if not any(part.python2 for part in parts):  # Else it takes its time, to show the same.
        attempt(task_arguments.spelling, parts, [], str(path))
        assert attempt(program.era, parts) in ("0.x", "1.x")
    for part in parts:
        error = attempt(part.code, also=(SyntaxError,))
        if isinstance(error, SyntaxError):
            assert one_line(error.msg)
            assert error.filename == part.filename


def assert_only_read(path: Path, raw: bytes) -> None:
    """Gives a file to check and to the translation, which leave it as it is."""
    path.write_bytes(raw)
    check(path)
    translate(path)
    assert path.read_bytes() == raw


@given(SCRIPTS)
@example(b"# coding: rot13\nx = 1\n")
@example(b"# coding: idna\nx = 1\n")
@example(b"# coding: punycode\n" + b"a-" * 9_999)
@example(b"x = " + b"-" * 9999 + b"1\n")
@example(b"x = " + b" + ".join([b"1"] * 700))
@example(b"x = " + b" + ".join([b"1"] * 4000))
@example(b"from __future__ import (\n" * 9999)
@example(b"print 'x'\nfrom __future__ import (a\n" * 30)
@example(MANY_HOSTS)
@example(MANY_CALLS)
def test_scripts(folder: Path, raw: bytes) -> None:
    assert_only_read(folder / "script.py", raw)


@times(0.5)
@given(NOTEBOOKS)
@example(b"[" * 99_999)
@example(json.dumps({"cells": [{"cell_type": "code", "source": "\n" * 30_000}]}).encode())
@example(b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}')
def test_notebooks(folder: Path, raw: bytes) -> None:
    assert_only_read(folder / "notebook.ipynb", raw)


def test_cluster_of_a_script_that_cannot_be_read() -> None:
    found = attempt(
        task_arguments.spelling, [conversion.from_text("x = (\n", "old.py")], [], "old.py"
    )
    assert str(found).startswith("old.py:"), found


def test_names_of_files(folder: Path) -> None:
    for name in ("line\nend.py", "\x1b[2J.py", "surrogate\udcff.py", "ä.ipynb", " .py"):
        (folder / name).write_bytes(b"x = (\nprint 'x' \xff")
        found = attempt(sources.check, str(folder / name))
        assert len(formats.as_text(found, 1).splitlines()) == 4, name
        attempt(conversion.read, str(folder / name) + "\n")


@given(words("--job={job} --id={index}", tokens=("{", "}", "{ps}", "{job!r}", "{index:9999}")))
@example("--job={job.x}")
@example("{")
@example("{0}")
def test_words_that_tell_a_task(text: str) -> None:
    hosts = {"ps": ["ps-0.local:2222"], "worker": ["worker-0.local:2222"]}
    found = attempt(task_arguments.Spelling(text.split()).words, "ps", 0, hosts)
    assert isinstance(found, (list, UserError))
    if text == "--job={job} --id={index}":
        assert found == ["--job=ps", "--id=0"]
