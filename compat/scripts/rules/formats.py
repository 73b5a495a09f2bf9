"""Formats findings as text, JSON, or SARIF 2.1.0, which editors show next to the code."""

from __future__ import annotations

import json
import os
import pathlib
import urllib.parse
from typing import Any, Callable, Mapping, Sequence

from compat.errors import one_line
from compat.scripts.rules.catalog import RULES, UNREADABLE_RULE
from compat.scripts.rules.rule import CHANGES, FAILS, KINDS, UNREADABLE, Finding

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(findings: Sequence[Finding], files: int) -> str:
    """Returns one line per finding, in the form that compilers print, and a summary."""
    lines = [
        f"{one_line(finding.place)}: {finding.kind.level}: {finding.message} [{finding.rule}]"
        for finding in findings
    ]
    if findings:
        lines.append("")
    found = _counts(findings)
    lines += [f"{found[k.name]:6} {k.name:<10} {k.says}" for k in KINDS if k.name in found]
    if FAILS.name in found or UNREADABLE.name in found:
        verdict = "some of it does not run under python -m compat run"
    elif CHANGES.name in found:
        verdict = "run it with python -m compat run; without, it computes something else"
    else:
        verdict = "all of it runs under python -m compat run"
    lines.append(f"{_number(files, 'file')}, {_number(len(findings), 'finding')}; {verdict}")
    return "\n".join(lines)


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Returns the number of findings by kind, without kinds that have none."""
    found = [finding.kind for finding in findings]
    return {kind.name: found.count(kind) for kind in KINDS if kind in found}


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def as_json(findings: Sequence[Finding], files: int) -> str:
    """Returns a JSON object with the number of files, all findings, and their number by kind."""
    records = [
        {
            "file": finding.file,
            "cell": finding.cell or None,
            "line": finding.line,
            "column": finding.column,
            "rule": finding.rule,
            "kind": finding.kind.name,
            "level": finding.kind.level,
            "name": finding.name,
            "message": finding.message,
            "served_by": finding.served_by or None,
            "gone": finding.gone or None,
        }
        for finding in findings
    ]
    return json.dumps({"files": files, "findings": records, "kinds": _counts(findings)}, indent=2)


def as_sarif(findings: Sequence[Finding], files: int) -> str:
    """Returns a SARIF log with one run.

    A finding in a notebook names its cell, and its line number is relative to that cell.
    """
    del files
    known = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.says},
            "help": {"text": f"{rule.before}\n\nmigrated:\n\n{rule.after or rule.before}"},
        }
        for rule in (*RULES, UNREADABLE_RULE)
    ]
    run = {
        "tool": {"driver": {"name": "compat-check", "rules": known}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding) for finding in findings],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding) -> dict[str, Any]:
    path = pathlib.Path(finding.file)
    uri = path.as_uri() if path.is_absolute() else urllib.parse.quote(os.fsencode(path.as_posix()))
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }
    if finding.cell:
        location["logicalLocations"] = [{"name": f"cell {finding.cell}"}]
    return {
        "ruleId": finding.rule,
        "level": finding.kind.level,
        "message": {"text": finding.message},
        "locations": [location],
    }


FORMATS: Mapping[str, Callable[[Sequence[Finding], int], str]] = {
    "json": as_json,
    "sarif": as_sarif,
    "text": as_text,
}
