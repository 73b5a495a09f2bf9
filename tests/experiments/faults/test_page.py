"""The page of the faults says what the tests have shown, and fails where one did or is missing."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

PAGE = Path(__file__).with_name("page.py")
ROWS = runpy.run_path(str(PAGE))
CELLS = [*ROWS["ROWS"]]
CELLS += [(fault, "") for fault in ROWS["SURROUNDINGS"]]


def test_the_page_has_the_states_of_a_task() -> None:
    page = PAGE.parents[3] / "docs" / "failures.md"
    assert page.read_text("utf-8").endswith(f"\n\n{ROWS['STATES']}\n")


def write(folder: Path, cells: list[dict[str, str]]) -> Any:
    """Returns the exit code, what was printed, and the page."""
    folder.mkdir()
    core = [cell for cell in cells if cell["fault"] == "SIGKILL"]
    for version, those in (("2.21.0", cells), ("1.15.5", core)):
        result = json.dumps({"tensorflow": version, "cells": those})
        (folder / f"{version}.json").write_text(result, encoding="utf-8")
    command = [sys.executable, str(PAGE), str(folder), str(folder / "page.md")]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout.decode(), (folder / "page.md").read_text("utf-8")


def test_each_cell_is_a_result(tmp_path: Path) -> None:
    cells = [
        {"fault": fault, "victim": victim, "runtime": runtime, "outcome": f"{number} on {runtime}"}
        for number, (fault, victim) in enumerate(CELLS)
        for runtime in ROWS["RUNTIMES"]
    ]
    code, said, text = write(tmp_path / "all", cells)
    assert code == 0, said
    assert "| **SIGTERM** | chief | 1 on legacy | 1 on modern |" in text
    last = len(CELLS) - 1
    assert f"| **SQLite locked** | {last} on legacy | {last} on modern |" in text
    assert "on TensorFlow 2.21.0, and, the core of it, on 1.15.5 (8 of the cells)." in text

    code, said, text = write(tmp_path / "missing", cells[1:])
    assert (code, "missing: 1" in said) == (1, True)
    assert "| **SIGTERM** | worker | **none** | 0 on modern |" in text

    cells[0]["outcome"] = ""
    code, said, text = write(tmp_path / "failed", cells)
    assert (code, "failed: ['SIGTERM worker legacy on 2.21.0']" in said) == (1, True)
    assert "| **SIGTERM** | worker | **failed** | 0 on modern |" in text
