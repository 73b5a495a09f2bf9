"""Findings for programs: JSON and SARIF, parsed back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.scripts.commands.check import main
from compat.scripts.rules.catalog import RULES

SCRIPT = """\
import tensorflow as tf
ä = tf.mul(1, 2); tf.nn.dropout(ä, 0.5)
hosts = ["pc-01:2222"]
tf.contrib.of_my_own.layer(ä)
"""


def report(path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main([f"--format={form}", str(path)]) == 1
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "an old script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_json_has_all_findings(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = report(script, "json", capsys)
    assert said["files"] == 1
    assert said["kinds"] == {"served": 1, "host": 1, "changes": 1, "fails": 1}
    found = [(f["kind"], f["level"], f["line"], f["column"]) for f in said["findings"]]
    assert found == [
        ("served", "note", 2, 5),
        ("changes", "warning", 2, 19),
        ("host", "note", 3, 11),
        ("fails", "error", 4, 1),
    ]
    first = said["findings"][0]
    message = first.pop("message")
    assert message.startswith("tf.mul is gone")
    assert first == {
        "file": str(script),
        "cell": None,
        "line": 2,
        "column": 5,
        "rule": "renamed",
        "kind": "served",
        "level": "note",
        "name": "tf.mul",
        "served_by": "tf.multiply",
        "gone": "1.0",
    }


def test_json_of_nothing_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.py"
    path.write_text("print(1)\n", encoding="utf-8")
    assert main(["--format=json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": 1, "findings": [], "kinds": {}}


def test_sarif_is_what_its_readers_need(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = report(script, "sarif", capsys)
    assert log["version"] == "2.1.0"
    assert "sarif-2.1.0" in log["$schema"]
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*(rule.id for rule in RULES), "unreadable"]
    assert run["tool"]["driver"]["name"]
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert result["ruleId"] in [rule["id"] for rule in rules]
        assert result["level"] in ("note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == script.as_uri()
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1
    assert [result["ruleId"] for result in run["results"]] == [
        "renamed",
        "dropout",
        "hosts",
        "unserved",
    ]


def test_sarif_of_a_notebook_names_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [{"cell_type": "code", "source": [line]} for line in SCRIPT.splitlines(True)]
    Path("an old one.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    log = report(Path("an old one.ipynb"), "sarif", capsys)
    location = log["runs"][0]["results"][0]["locations"][0]
    assert location["logicalLocations"] == [{"name": "cell 2"}]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "an%20old%20one.ipynb"
    assert location["physicalLocation"]["region"]["startLine"] == 1
