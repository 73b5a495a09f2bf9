"""What doctor reads: constraints, and what packages say of themselves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.doctor import constraints
from compat.doctor.packages import Packages
from compat.errors import UserError
from tests.fuzz.conftest import attempt, mutated, times, words

pytestmark = pytest.mark.once

LINES = ["1.15", "2.11", "2.21"]
PINS = b"""# of the time
tensorflow ==2.21.0  # the line
protobuf <3.21; python_version < "3.8"
mlflow[extras] >=1.30,!=2.0.*; extra == ""
"""
METADATA = b"""Metadata-Version: 2.1
Name: of-our-own
Version: 1.0
Requires-Dist: numpy (<2,>=1.22)
Requires-Dist: protobuf<3.21; python_version < "3.8" and extra == "all"
"""
TOKENS = (
    b"-r other.txt\n",
    b"--hash=sha256:0\n",
    b"\\\n",
    b"\xff",
    b"\0",
    b"; ",
    b"@ file:///",
    b"(",
)
VERSION = words("2.21.0", "1.15.5", tokens=("unknown", "+local", "rc1", "9" * 5000, "."))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of constraints that is also one of installed packages."""
    folder = Path(tmp_path_factory.mktemp("requirements"))
    (folder / "of_our_own-1.0.dist-info").mkdir()
    for line in LINES:
        (folder / f"tf{line}.txt").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constraints, "_FOLDER", folder)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield folder


@times(3)
@given(st.one_of(mutated(PINS, tokens=TOKENS), st.binary(max_size=40)))
@example(b"-r other.txt\n")
@example(b"\xff")
@example(b'numpy; python_version > "x" and extra > "y"\n')
def test_constraints(folder: Path, raw: bytes) -> None:
    (folder / "tf2.21.txt").write_bytes(raw)
    (folder / "tf2.x.txt").touch()
    assert attempt(constraints.lines) == LINES
    found = attempt(constraints.pins, "2.21")
    if not isinstance(found, UserError):
        for need in found.values():
            attempt(constraints.meets, "1.0", need)


@times(2)
@given(st.one_of(mutated(METADATA, tokens=TOKENS), st.binary(max_size=40)))
@example(b"Metadata-Version: 2.1\n")
@example(METADATA + b"\xff\n")
@example(METADATA + b'Requires-Dist: numpy; python_version > "x"\n')
def test_what_packages_say(folder: Path, raw: bytes) -> None:
    (folder / "of_our_own-1.0.dist-info" / "METADATA").write_bytes(raw)
    version = attempt(constraints.version, "of-our-own")
    assert version is None or isinstance(version, str)
    for need in attempt(constraints.needs, "of-our-own").values():
        attempt(constraints.meets, version, need)


@given(VERSION)
@example("unknown")
@example("2.x")
def test_versions(version: str) -> None:
    line = attempt(constraints.line_of, version)
    assert all(isinstance(number, int) for number in attempt(constraints.order, line))


def test_all_of_it(folder: Path) -> None:
    for raw in (PINS, b"-r other.txt\n"):
        for line in LINES:
            (folder / f"tf{line}.txt").write_bytes(raw)
        attempt(Packages)
