"""What is known of vulnerabilities: `python -m tests.audit PACKAGES EXCEPTIONS`, by `tox -e audit`.

PACKAGES has a package with its release in each line, as `uv pip compile` writes them; EXCEPTIONS is
`.ci/audit.txt`. Ends with the exit code of `compat.doctor.audit`.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

# By its path: where packages are audited, none of this project's is installed.
AUDIT = runpy.run_path(
    str(Path(__file__).resolve().parents[1] / "compat" / "doctor" / "audit.py"), run_name="audit"
)
_WORDS = {
    0: "nothing is known",
    1: "vulnerable",
    2: "failed",
    AUDIT["NOTHING_LEARNT"]: "not all is known",
}
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


def main(packages: str, excepted: str) -> Any:
    """Holds the packages against the published vulnerabilities; returns the exit code."""
    ignored = exceptions(Path(excepted).read_text(encoding="utf-8"))
    lines, code = AUDIT["audit"](Path(packages), ignored)
    print("\n".join(lines))
    print("audit:", _WORDS[code])
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
