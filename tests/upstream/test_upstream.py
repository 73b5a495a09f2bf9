"""TensorFlow's own tests of the old API: with our names, and with its own on the modern runtime.

They are read from the git directory of a TensorFlow 2.0 tree that `UPSTREAM_TENSORFLOW` names.
`rows.py` lists those that do not pass; a row that passes fails here, and so does a new failure.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compat._tensorflow import version

HERE = Path(__file__).parent
TABLE = runpy.run_path(str(HERE / "rows.py"))
ROWS, RELEASE = [*TABLE["ROWS"], *TABLE["MODERN"], *TABLE["AHEAD"]], TABLE["RELEASE"]
TREE = "UPSTREAM_TENSORFLOW"
PROGRAM = HERE / "program.py"
DEADLINE_SECS = 900


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_SECS + 30)
@pytest.mark.skipif(TREE not in os.environ, reason=f"{TREE} names no git directory of TensorFlow")
@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{Path(row.file).stem}-{row.runtime}{'-ahead' * bool(row.ahead)}"
)
def test_what_does_not_pass_has_a_row(row: Any, tmp_path: Path) -> None:
    if not version().startswith(RELEASE):
        pytest.skip(f"the rows are those of TensorFlow {RELEASE}")
    settings: dict[str, Any] = {"git_dir": os.path.abspath(os.environ[TREE]), "file": row.file}
    settings.update(runtime=row.runtime, ahead=row.ahead)
    process = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(settings)],
        cwd=tmp_path,
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TEST_TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECS,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    seen = json.loads(process.stdout.splitlines()[-1])
    failed = {test: why for test, why in seen.items() if why}
    assert {test: why for test, why in failed.items() if test not in row.failing} == {}
    assert sorted(set(row.failing) - set(failed)) == []
    assert len(seen) == row.tests
