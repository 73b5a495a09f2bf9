"""What the programs in `programs/` report, each run once for each runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs."""
    return PROGRAMS


@pytest.fixture(scope="session")
def placed(run_program: RunProgram, runtime: str) -> Any:
    """Where variables went, by case, of `programs/placement.py`."""
    return run_program(PROGRAMS / "placement.py", runtime=runtime)


@pytest.fixture(scope="session")
def ran(run_program: RunProgram, runtime: str) -> Any:
    """What a runtime and its session did in one process, of `programs/session.py`."""
    return run_program(PROGRAMS / "session.py", runtime=runtime)


@pytest.fixture(scope="session")
def kept(run_program: RunProgram, runtime: str) -> Any:
    """What became of checkpoints, by case, of `programs/checkpoints.py`."""
    return run_program(PROGRAMS / "checkpoints.py", runtime=runtime)


@pytest.fixture(scope="session")
def supervised(run_program: RunProgram, runtime: str) -> Any:
    """What a supervisor did, by case, of `programs/supervision.py` and `programs/endings.py`."""
    return run_program(PROGRAMS / "supervision.py", runtime=runtime)
