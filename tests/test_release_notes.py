"""The notes of a release are the changes of its version, and what the pages of tests show."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[1]
NOTES = runpy.run_path(str(ROOT / "tests" / "release_notes.py"))
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- One.

## [0.1.0] - 2026-11-26

- Two.
"""


@pytest.mark.parametrize(
    ("version", "section"), [("Unreleased", "### Added\n\n- One."), ("0.1.0", "- Two.")]
)
def test_changes_of_a_version(version: str, section: str) -> None:
    assert NOTES["changes"](CHANGELOG, version) == section


def test_a_version_without_changes_is_refused() -> None:
    with pytest.raises(ValueError, match="'1.0.0' has no section .* expected Unreleased, 0.1.0;"):
        NOTES["changes"](CHANGELOG, "1.0.0")


@pytest.mark.parametrize(
    ("rows", "message"),
    [("", "TensorFlow at all;"), ("| 2.4.4 | 3.8 | 17 | **not run** |\n", "TensorFlow 2.4.4;")],
)
def test_lines_that_were_not_run_are_refused(rows: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NOTES["releases"](f"## Features\n\n{rows}\n## The same numbers\n| 1.15.5 | 3.7 | 3 |\n")


def test_notes_of_this_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert NOTES["main"]() == 0
    first, _, rest = capsys.readouterr().out.partition("\n")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{first[2:]}]" in changelog
    changes, _, verified = rest.partition("\n## Verified\n")
    assert changes.strip() in changelog
    pages = re.findall(r"^- (docs/\w+\.md), ", verified, re.MULTILINE)
    assert pages == ["docs/compatibility.md", *NOTES["PAGES"]]
    assert "TensorFlow 1.15.5, 2.4.4, " in verified
    assert all((ROOT / page).is_file() for page in pages)
