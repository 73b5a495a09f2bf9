"""What the tests have shown on one TensorFlow line, as a file that `tests.matrix` reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compat.doctor import constraints


class MatrixResults:
    """A plugin of pytest that leaves the file when all tests have had their turn, and else none.

    Args:
      file: what is written.
      runtimes: those that this TensorFlow has.
    """

    def __init__(self, file: Path, runtimes: list[str]) -> None:
        self._file = file
        self._runtimes = runtimes
        self._failed: list[str] = []
        self._features: dict[str, Any] = {}
        self._differences: dict[str, float] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():  # Of an earlier run: whatever happens to this one, it says nothing of it.
            file.unlink()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)
        properties = list(report.user_properties)
        for name in [value for key, value in properties if key == "feature"]:
            counts = self._features.setdefault(name, {"passed": 0, "failed": []})
            if report.failed:
                counts["failed"].append(report.nodeid)
            elif report.passed and report.when == "call":
                counts["passed"] += 1
        if report.when == "call":
            for where, found in [value for key, value in properties if key == "difference"]:
                self._differences[where] = max(found, self._differences.get(where, 0.0))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return  # Interrupted, say.
        result = {
            "tensorflow": constraints.version("tensorflow"),
            "python": "{}.{}".format(*sys.version_info),
            "runtimes": self._runtimes,
            "failed": self._failed,
            "features": self._features,
            "differences": self._differences,
        }
        self._file.write_text(json.dumps(result, indent=1, sort_keys=True), encoding="utf-8")
