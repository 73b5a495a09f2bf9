"""Finds known vulnerabilities of packages, by pip-audit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterable, Mapping

NOTHING_LEARNT = 75  # EX_TEMPFAIL of sysexits.h: try again later.
_UNREACHED = re.compile(r"connect|timed out|resolve", re.IGNORECASE)


def audit(packages: Path, ignored: Iterable[str] = ()) -> tuple[list[str], int]:
    """Checks the packages in a file of pins, such as "six==1.17.0", for known vulnerabilities.

    Returns:
      The lines to print, and the exit code: 0 if no vulnerability is known, 1 if a package has one,
      2 if pip-audit failed, and 75 if a package could not be checked, for example because the
      service did not answer.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format=json"),
            *("--progress-spinner=off", f"--requirement={packages}"),
            *(f"--ignore-vuln={name}" for name in ignored),
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    try:
        return verdict(json.loads(done.stdout))
    except ValueError:
        last = done.stderr.splitlines()[-1:]
        unreached = last and _UNREACHED.search(last[0])
        return (last, NOTHING_LEARNT) if unreached else (done.stderr.splitlines(), 2)


def verdict(report: Mapping[str, Any]) -> tuple[list[str], int]:
    """Returns the lines about the findings of pip-audit, and the exit code."""
    vulnerable, unknown = [], []
    for package in report["dependencies"]:
        if "skip_reason" in package:
            unknown.append(f"{package['name']}: unknown: {package['skip_reason']}")
        for known in package.get("vulns", []):
            fixed = ", ".join(known["fix_versions"]) or "no release"
            name = f"{package['name']} {package['version']}"
            vulnerable.append(f"{name}: {known['id']}: fixed by {fixed}")
    if vulnerable:
        return vulnerable + unknown, 1
    return unknown, NOTHING_LEARNT if unknown or not report["dependencies"] else 0
