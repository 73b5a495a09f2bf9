"""TensorFlow's migration guide: its cells of TensorFlow 1.x run by `compat run`, as the page says.

`MIGRATION_GUIDE` names a copy of `site/en/guide/migrate` of https://github.com/tensorflow/docs.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from compat._tensorflow import version

HERE = Path(__file__).parent
GUIDE = runpy.run_path(str(HERE / "guide.py"))
COPY = "MIGRATION_GUIDE"
RELEASE = "2.21"


@pytest.mark.slow
@pytest.mark.skipif(COPY not in os.environ, reason=f"{COPY} names no copy of the guide")
@pytest.mark.skipif(not version().startswith(RELEASE), reason=f"the table is of {RELEASE}")
@pytest.mark.parametrize("notebook", GUIDE["NOTEBOOKS"], ids=lambda notebook: notebook.name)
def test_what_does_not_run_says_why(notebook: Any, tmp_path: Path) -> None:
    code, _ = GUIDE["run"](Path(os.environ[COPY]), notebook, tmp_path)
    assert (code != 0) == bool(notebook.missing), (tmp_path / "said").read_text("utf-8")[-3000:]


def test_the_page_has_the_table() -> None:
    page = (HERE.parents[1] / "docs" / "migration.md").read_text("utf-8")
    head = ["| notebook | cells | |", "|---|---|---|"]
    assert "\n".join([*head, *map(GUIDE["line"], GUIDE["NOTEBOOKS"])]) in page
