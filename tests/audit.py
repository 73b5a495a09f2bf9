"""What is known of vulnerabilities: `python -m tests.audit PACKAGES EXCEPTIONS`, by `tox -e audit`.

PACKAGES has a package with its release in each line, as `uv pip compile` writes them; EXCEPTIONS is
`.ci/audit.txt`. A package about which nothing can be learnt is a failure as well: a service that
cannot be reached has found nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def main(packages: str, excepted: str) -> int:
    """Holds the packages against the published vulnerabilities; returns the exit code."""
    ignored = exceptions(Path(excepted).read_text(encoding="utf-8"))
    return subprocess.call(
        [
            *(sys.executable, "-m", "pip_audit", "--strict", "--no-deps", "--disable-pip"),
            *("--progress-spinner=off", f"--requirement={packages}"),
            *(f"--ignore-vuln={name}" for name in ignored),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
