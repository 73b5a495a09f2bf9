"""Texts that lie on servers; that tasks read each other's, the tests of membership show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = [pytest.mark.cluster, pytest.mark.once]


def test_a_server_that_is_lost_meanwhile_is_said_once(
    run_program: RunProgram, programs: Path
) -> None:
    """By the error of the call; TensorFlow's own end of a session adds a traceback."""
    found = run_program(programs / "lost_server.py")
    assert found["raised"] in ("DeadlineExceededError", "UnavailableError")
    assert found["complaints"] == ""
