"""What is known of vulnerabilities: `python -m tests.audit PACKAGES EXCEPTIONS`, by `tox -e audit`.

PACKAGES has a package with its release in each line, as `uv pip compile` writes them; EXCEPTIONS is
`.ci/audit.txt`. Ends with 1 if a package is vulnerable, with 2 if pip-audit failed, and with 75 if
nothing could be learnt of one: a service that cannot be reached has found nothing, which is not the
same as none.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

NOTHING_LEARNT = 75  # As sysexits.h has it: try again later.
_WORDS = {0: "nothing is known", 1: "vulnerable", 2: "failed", NOTHING_LEARNT: "not all is known"}
_UNREACHED = re.compile(r"connect|timed out|resolve", re.IGNORECASE)

_EXCEPTION = re.compile(r"(?P<id>[A-Z]+-\S+) +(?P<date>\d{4}-\d\d-\d\d) +(?P<reason>\S+: \S.*)")


def exceptions(text: str) -> list[str]:
    """Returns the ids of the exceptions.

    Raises:
      ValueError: one has no date, or no reason.
    """
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            entry = _EXCEPTION.fullmatch(line.strip())
            if entry is None:
                raise ValueError(
                    f"{line!r} is no exception; expected ID YYYY-MM-DD PACKAGE: REASON"
                )
            found.append(entry["id"])
    return found


def verdict(found: Mapping[str, Any]) -> tuple[list[str], int]:
    """Returns what is to be said of what pip-audit has found, and the exit code."""
    vulnerable, unknown = [], []
    for package in found["dependencies"]:
        if "skip_reason" in package:
            unknown.append(f"{package['name']}: unknown: {package['skip_reason']}")
        for known in package.get("vulns", []):
            fixed = ", ".join(known["fix_versions"]) or "no release"
            name = f"{package['name']} {package['version']}"
            vulnerable.append(f"{name}: {known['id']}: mended by {fixed}")
    if vulnerable:
        return vulnerable + unknown, 1
    return unknown, NOTHING_LEARNT if unknown or not found["dependencies"] else 0


def main(packages: str, excepted: str) -> int:
    """Holds the packages against the published vulnerabilities; returns the exit code."""
    ignored = exceptions(Path(excepted).read_text(encoding="utf-8"))
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
        lines, code = verdict(json.loads(done.stdout))
    except ValueError:
        lines = done.stderr.splitlines()
        unreached = lines and _UNREACHED.search(lines[-1])
        lines, code = (lines[-1:], NOTHING_LEARNT) if unreached else (lines, 2)
    print("\n".join(lines))
    print("audit:", _WORDS[code])
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
