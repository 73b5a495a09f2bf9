"""The page of the matrix says what its lines have shown, and fails with a line that failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

PASSED = {"passed": 3, "failed": []}
FAILED = {"passed": 2, "failed": ["tests/test_it.py::test_it"]}


def report(folder: Path, **lines: dict[str, Any]) -> tuple[int, str, dict[str, list[str]]]:
    """Returns the code, what was said, and the cells of each row of both tables."""
    results = folder / "matrix"
    results.mkdir()
    for name, shown in lines.items():
        (results / f"{name}.json").write_text(json.dumps(shown), encoding="utf-8")
    page = folder / "page.md"
    command = [sys.executable, str(Path(__file__).with_name("matrix.py")), str(results), str(page)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=False)
    rows: dict[str, list[str]] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            cells = line.strip("| ").split(" | ")
            rows.setdefault(cells[0], []).extend(cells[1:])
    return ran.returncode, ran.stdout.decode(), rows


def shown(version: str, differences: dict[str, float], **features: Any) -> dict[str, Any]:
    return {
        "tensorflow": version,
        "python": "3.11",
        "features": features,
        "differences": differences,
    }


def test_each_cell_is_a_result(tmp_path: Path) -> None:
    code, said, rows = report(
        tmp_path,
        newer=shown("2.10.1", {"one process, legacy": 2e-6}, legacy=PASSED, sync=PASSED),
        older=shown("2.9.3", {"one process, legacy": 1e-7, "cluster, modern": 0.3}, modern=PASSED),
    )
    assert code == 0
    assert said.endswith("page.md: 2 lines\n")
    assert list(rows) == ["TensorFlow", "---", "2.9.3", "2.10.1"]
    none = "none"
    assert rows["2.9.3"][:7] == ["3.11", none, "3", none, none, none, none]
    assert rows["2.9.3"][7:] == ["3.11", "< 1e-06", none, none, "**3.0e-01**"]
    assert rows["2.10.1"][:7] == ["3.11", "3", none, none, "3", none, none]
    assert rows["2.10.1"][7:] == ["3.11", "< 1e-05", none, none, none]


def test_a_failed_line_fails_unless_it_is_to_come(tmp_path: Path) -> None:
    coming = {"coming": shown("2.22.0rc1", {}, legacy=FAILED)}
    code, said, rows = report(tmp_path, **coming)
    assert (code, rows["2.22.0rc1"][1]) == (0, "**1 failed**")
    assert said.endswith("1 lines, failed: 2.22.0rc1\n")
    (tmp_path / "again").mkdir()
    code, said, _ = report(tmp_path / "again", old=shown("2.4.4", {}, scripts=FAILED), **coming)
    assert code == 1
    assert said.endswith("2 lines, failed: 2.4.4, 2.22.0rc1\n")
