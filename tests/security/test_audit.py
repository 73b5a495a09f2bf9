"""The audit: its exceptions have dates and reasons, and what it could not learn is no all-clear."""

from __future__ import annotations

import configparser
import runpy
from pathlib import Path
from typing import Any

import pytest

from compat.doctor.audit import verdict

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
# The folder of the project may not be on the path.
AUDIT = runpy.run_path(str(ROOT / "tests" / "audit.py"))
exceptions = AUDIT["exceptions"]


def test_exceptions_have_dates_and_reasons() -> None:
    text = (ROOT / ".ci" / "audit.txt").read_text(encoding="utf-8")
    assert len(set(exceptions(text))) == len(exceptions(text))


def test_an_exception_is_an_id() -> None:
    text = "# Why.\n\nCVE-2099-1  2099-01-31  mlflow: its server alone, at loopback here.\n"
    assert exceptions(text) == ["CVE-2099-1"]


@pytest.mark.parametrize(
    "line", ["CVE-2099-1", "CVE-2099-1 mlflow: why", "CVE-2099-1 2099-01-31", "2099-01-31 x: why"]
)
def test_one_without_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="expected ID YYYY-MM-DD PACKAGE: REASON"):
        exceptions(line)


WELL = {"name": "six", "version": "1.17.0", "vulns": []}
UNKNOWN = {"name": "absl-py", "skip_reason": "not found"}
KNOWN = {"id": "CVE-2099-1", "fix_versions": ["2.0", "1.9.1"]}
VULNERABLE = {"name": "mlflow", "version": "1.0", "vulns": [KNOWN]}


@pytest.mark.parametrize(
    ("packages", "code", "first"),
    [
        ([WELL], 0, None),
        ([WELL, UNKNOWN], 75, "absl-py: unknown: not found"),
        ([], 75, None),
        ([UNKNOWN, VULNERABLE], 1, "mlflow 1.0: CVE-2099-1: fixed by 2.0, 1.9.1"),
    ],
)
def test_nothing_learnt_is_not_nothing_found(
    packages: list[dict[str, Any]], code: int, first: str | None
) -> None:
    lines, found = verdict({"dependencies": packages})
    assert (found, next(iter(lines), None)) == (code, first)


def test_ci_audits() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(str(ROOT / "tox.ini"), encoding="utf-8")
    assert ".ci/audit.txt" in tox["testenv:audit"]["commands"]
    assert "-e audit" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
