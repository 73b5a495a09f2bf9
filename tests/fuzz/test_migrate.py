"""Scripts that are migrated: no rule fails; without TensorFlow none changes, and none is found."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.errors import UserError, one_line
from compat.scripts.migrating import migration
from compat.scripts.reading import conversion
from compat.scripts.rules import sources
from compat.scripts.rules.catalog import RULES, chosen
from tests.fuzz.conftest import PYTHON2, PYTHON3, SCRIPT_TOKENS, attempt, mutated

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once

LIBRARY = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
# Uses of all rules, to be put amid each other.
PARTS = [f"{rule.before}\n".encode() for rule in RULES if rule.gone != "Python 3"]
TOKENS = [
    *SCRIPT_TOKENS,
    *PARTS,
    b"(",
    b")",
    b"'''",
    b"; ",
    b"\\\n",
    b"  # x\n",
    b"f'{tf.mul(1, 2)}'",
    b"f'{tf.contrib.ffmpeg.x}'",
]
TODAY = b"import tensorflow as tf, numpy as np\n" + b"".join(PARTS)


def migrate(raw: bytes, folder: Path) -> None:
    """Migrates a script; what comes out is Python, and is not changed by a second time."""
    path = folder / "script.py"
    path.write_bytes(raw)
    parts = attempt(conversion.read, str(path))
    if isinstance(parts, UserError):
        return
    found = attempt(migration.migrate, parts[0], RULES, also=(SyntaxError,))
    if isinstance(found, SyntaxError):
        assert one_line(found.msg)
    elif not isinstance(found, UserError) and found.is_changed:
        ast.parse(found.text)
        again = attempt(migration.migrate, conversion.from_text(found.text, str(path)), RULES)
        assert again.text == found.text
        assert again.remarks == found.remarks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("scripts"))


@given(
    st.one_of(
        mutated(TODAY, PYTHON3, tokens=TOKENS),
        mutated(PYTHON2, tokens=TOKENS),
        st.lists(st.sampled_from(PARTS), max_size=6).map(lambda parts: b"".join([TODAY, *parts])),
    )
)
@example(TODAY)
@example(b"import tensorflow as tf\nx = [" + b"tf.mul(1,2)," * 2500 + b"]")
@example(b"import tensorflow as tf\nx = " + b"tf.neg(" * 80 + b"1" + b")" * 80)
@example(b"\x0cimport tensorflow as tf;\\\nx = tf.neg(1) ; \\\ny = tf.contrib.ffmpeg.x")
@example(b"if x: import tensorflow\nelse: import tensorflow.contrib.ffmpeg")
def test_scripts(folder: Path, raw: bytes) -> None:
    migrate(raw, folder)


def test_library_of_python_stays_as_it_is(folder: Path) -> None:
    for file in LIBRARY[::20]:
        raw = file.read_bytes()
        (part,) = attempt(conversion.read, str(file))
        assert migration.migrate(part, RULES).text == part.text, file
        found = attempt(sources.check, str(file))
        assert not [finding for finding in found if finding.name.startswith("tf.")], file
        assert file.read_bytes() == raw


def test_library_of_python_with_tensorflow_is_taken_apart(folder: Path) -> None:
    """As real code as there is: its words are found, and only one line changes."""
    rules = chosen(None, ["packages", "tostring"])
    for file in LIBRARY[5::40]:
        raw = file.read_bytes()
        if b"from __future__" not in raw and len(raw) < 60_000:
            text = raw.decode("utf-8") + "\nimport tensorflow as tf\ntf.mul(1, 2)\n"
            found = migration.migrate(conversion.from_text(text, str(file)), rules)
            expected = text.replace("import tensorflow as", "import compat.v1 as")
            assert found.text.replace("from compat.v1 import python2\n", "") == expected.replace(
                "tf.mul(1", "tf.multiply(1"
            )
