"""The commands that an installation has beside `python -m`."""

from __future__ import annotations

import configparser
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


def test_console_scripts_are_there() -> None:
    setup = configparser.ConfigParser()
    setup.read(str(ROOT / "setup.cfg"), encoding="utf-8")
    scripts = setup["options.entry_points"]["console_scripts"].strip().splitlines()
    assert [line.partition(" = ")[0] for line in scripts] == ["compat", "experiments"]
    for line in scripts:
        module, _, function = line.partition(" = ")[2].partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_a_program_by_its_name() -> None:
    start = "import sys; from experiments.__main__ import main; sys.exit(main())"
    argv = ["mnist", "--strategy=ps", "--num_workers=201", "--dataset=digits"]
    done = subprocess.run(
        [sys.executable, "-c", start, *argv], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ps=1,worker=201 are 202 tasks, expected at most 200 ")
