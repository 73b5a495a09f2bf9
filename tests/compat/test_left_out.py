"""An assignment of a step that no returned value depends on is named, in a line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Process

if TYPE_CHECKING:
    from typing import Any

PROGRAM = Path(__file__).parent / "programs" / "left_out.py"


@pytest.mark.once
def test_the_assignment_and_its_variable_are_named(tmp_path: Path, runtime: str) -> None:
    settings: dict[str, Any] = {"runtime": runtime}
    process = Process(PROGRAM, settings, tmp_path / "run", env={})
    try:
        assert process.report == {}
    finally:
        process.send(9)
    _, _, both = process.complaints.partition("held\n")
    held, _, left_out = both.partition("left out\n")
    assert "never run" not in held
    (line,) = [line for line in left_out.splitlines() if "never run" in line]
    assert "AssignVariableOp" in line
    assert "(to mean), since no value that the step returns depends on it" in line
