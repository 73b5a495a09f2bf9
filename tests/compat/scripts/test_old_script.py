"""The guide docs/old-script.md: its commands print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compat.scripts.commands import check
from compat.scripts.commands.migrate import main
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "old-script.md").read_text(encoding="utf-8")
OLD, NEW = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
STORY = re.findall(r"```sh\npython -m compat (.*?)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def masked(text: str) -> str:
    """Returns an output without what differs from run to run, and from release to release."""
    return re.sub(r"\d+\.\d[\d.]*|difference \S+,", "N", text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(OLD, encoding="utf-8")
    (tmp_path / "sums.py").write_text(NEW, encoding="utf-8")
    return tmp_path


def test_what_reads_sources_does_what_the_guide_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    shown = [(shlex.split(c), said) for c, said in STORY if c.split()[0] in ("check", "migrate")]
    for (name, *argv), said in shown:
        assert {"check": check.main, "migrate": main}[name](argv) == 0
        assert capsys.readouterr().out == said
    assert len(shown) == 3


@pytest.mark.slow
def test_what_runs_does_what_the_guide_shows(folder: Path) -> None:
    for command, said in STORY:
        ran = run_python("-m", "compat", *shlex.split(command), cwd=folder)
        assert masked(said) in masked(ran.stdout), (command, ran.stdout + ran.stderr)


@pytest.mark.long
def test_batches_that_data_draws_otherwise_are_named(folder: Path) -> None:
    """The losses are equal, since both programs are given the batches of the script."""
    wrong = NEW.replace('"x": ', '"x": 2 * ')
    assert wrong != NEW
    (folder / "sums.py").write_text(wrong, encoding="utf-8")
    ran = run_python("-m", "compat", "prove", "--steps=3", "--b=sums.py", "train.py", cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    _, _, batches, verdict = ran.stdout.splitlines()
    assert re.match(
        r"batches of data\(\): equal in 0 of 3 calls; in call 1 x:0: 0\.\d+ and ", batches
    )
    assert verdict.startswith("equal: 3 losses of the first 3 training calls")
