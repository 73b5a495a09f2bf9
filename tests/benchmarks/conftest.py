"""Runs the benchmarks of the folder of the project, forked from a process with TensorFlow."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from tests.conftest import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 280.0


class Printed:
    """What a benchmark has printed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the rows of its first table."""
        lines = self.text[self.text.index("|") :].partition("\n\n")[0].splitlines()
        rows = [line for line in lines if line.startswith("|")]
        return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.fixture
def benchmark(tmp_path: Path, start_program: Callable[..., Any]) -> Callable[..., Printed]:
    """Runs `python -m` of a benchmark and its arguments."""

    def run(*command: str) -> Printed:
        env = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3"}
        out, err = tmp_path / "benchmark.out", tmp_path / "benchmark.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            argv = [sys.executable, "-m", *command]
            program = start_program(argv, cwd=ROOT, env=env, stdout=stdout, stderr=stderr)
            try:
                code = program.wait(SECONDS)
            finally:
                program.kill()
        assert code == 0, err.read_text(encoding="utf-8")
        return Printed(out.read_text(encoding="utf-8"))

    return run
