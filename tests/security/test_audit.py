"""The exceptions of the audit: each has a date and a reason."""

from __future__ import annotations

import configparser
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
# The folder of the project may not be on the path.
exceptions = runpy.run_path(str(ROOT / "tests" / "audit.py"))["exceptions"]


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


def test_the_audit_fails_where_nothing_could_be_learnt() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(str(ROOT / "tox.ini"), encoding="utf-8")
    assert ".ci/audit.txt" in tox["testenv:audit"]["commands"]
    assert '"--strict"' in (ROOT / "tests" / "audit.py").read_text(encoding="utf-8")
