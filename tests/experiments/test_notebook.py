"""An experiment in a notebook: a bar, the curves, and the history of the run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
DEADLINE_SECS = 300
PROGRAM = (Path(__file__).parent / "programs" / "digits.py").read_text().partition("\nif __name")[0]
CELLS = [
    PROGRAM,
    "result = run(Digits)",
    "print(result.history['validation/accuracy'], sorted(result.history))",
    "run(Digits, hidden=-1)",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> list[Any]:
    """What each cell shows."""
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copy(str(empty_store), str(folder))
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join(filter(None, [PACKAGES, os.environ.get("PYTHONPATH")]))
        patch.setenv("PYTHONPATH", path)
        place = {"metadata": {"path": str(folder)}}
        NotebookClient(
            notebook, timeout=DEADLINE_SECS, allow_errors=True, resources=place
        ).execute()
    return [cell.outputs for cell in notebook.cells]


def test_run_shows_one_bar_and_the_curves(outputs: list[Any]) -> None:
    shown = [each.data for each in outputs[1] if each.output_type == "display_data"]
    (bar,) = [data["text/html"] for data in shown if "text/html" in data]
    assert bar == '<progress max="30" value="30"></progress> step 30 of 30'
    (_,) = [data for data in shown if "image/png" in data]
    printed = "".join(each.text for each in outputs[1] if each.get("name") == "stdout")
    assert "Test-Accuracy: 0." in printed
    assert "\ndone\n" in printed


def test_result_has_the_curves(outputs: list[Any]) -> None:
    (shown,) = outputs[2]
    assert shown.text.startswith("[(10, 0.")
    for name in ("train/loss", "validation/accuracy", "validation/loss", "learning_rate"):
        assert f"'{name}'" in shown.text


def test_a_wrong_setting_is_an_error_of_the_cell(outputs: list[Any]) -> None:
    error = outputs[3][-1]
    assert error.ename == "UserError"
    assert error.evalue == "--hidden=-1 is too small; give 1 or more"
