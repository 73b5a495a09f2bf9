"""The notebooks run from their first cell to their last, and show what they print."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
DEADLINE_SECS = 200
ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(str(path), as_version=4)


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns what was printed but for words about waiting, sorted, as processes print anyhow."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    # Not the standard error: an older kernel complains there of the end of its forked children.
    text = "".join(o.text for o in outputs if o.get("name") == "stdout")
    waiting = r"^(waiting for|all \d+ peers|\S+ at \S+ is there) .*\n"
    text = re.sub(waiting, "", text, flags=re.MULTILINE)
    return sorted(re.sub(r":\d{4,5}\b", ":PORT", text).splitlines())


def by_any_worker(lines: list[str]) -> list[str]:
    """Returns the lines without who counted which number: that is different in each run."""
    return sorted(re.sub(r"(enqueued|number) \d+( of worker \d+)?", r"\1", line) for line in lines)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [PACKAGES, os.environ.get("PYTHONPATH")]))
    )
    shown = printed(read(path))
    notebook = read(path)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=DEADLINE_SECS, resources=place).execute()
    lines = printed(notebook)
    assert by_any_worker(lines) == by_any_worker(shown)
    numbers = [int(n) for line in lines for n in re.findall(r"^ps: number (\d+) of", line)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_stores_its_output(path: Path) -> None:
    assert printed(read(path))
    assert [
        c for c in read(path).cells if c.cell_type == "code" and c.execution_count is None
    ] == []
