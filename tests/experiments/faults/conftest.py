"""Keeps what the tests of the faults have shown, for docs/failures.md."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from compat.doctor import constraints


def pytest_configure(config: pytest.Config) -> None:
    """Listens where tox asks for it."""
    # Of several processes of pytest, one hears from all.
    if "FAULTS_RESULTS" in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FaultsResults(Path(os.environ["FAULTS_RESULTS"])))


class FaultsResults:
    """What the others did, by fault, victim and runtime; `page` reads it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._cells: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if "fault" in properties:
            fault, victim, runtime = properties["fault"]
            cell = {"fault": fault, "victim": victim, "runtime": runtime}
            if report.when == "call":
                cell["outcome"] = properties.get("outcome", "") if report.passed else ""
                self._cells[report.nodeid] = cell
            elif report.failed:
                self._cells[report.nodeid] = {**cell, "outcome": ""}

    def pytest_sessionfinish(self) -> None:
        result = {
            "tensorflow": constraints.version("tensorflow"),
            "cells": list(self._cells.values()),
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(result, indent=1), encoding="utf-8")
