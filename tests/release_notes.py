"""Prints the notes of a release: `python -m tests.release_notes [VERSION]`.

They are the section of CHANGELOG.md, and what was verified, each line with the page that shows it
and the commit that last wrote that page. Without VERSION it is the one of setup.cfg, whose section
is called Unreleased until the release. `tox -e package` adds what it has verified of the archives.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "Unreleased"
# Pages that tests write, and what each one says of the release.
PAGES = {
    "docs/failures.md": "what the other tasks do when one fails: each cell by a test",
    "docs/soak.md": "training under random faults",
    "docs/ledger.md": "how often each update was applied, under random faults",
}


def changes(changelog: str, version: str) -> str:
    """Returns the section of a version.

    Raises:
      ValueError: there is none.
    """
    parts = re.split(r"^## \[(.+?)\].*\n", changelog, flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2]))
    if version not in sections:
        raise ValueError(
            f"version {version!r} has no section in CHANGELOG.md; expected {', '.join(sections)}; "
            "name one of them"
        )
    return sections[version].strip()


def releases(page: str) -> list[str]:
    """Returns the releases of TensorFlow that docs/compatibility.md has a row of.

    Raises:
      ValueError: a cell says that something was not run.
    """
    features = page.split("## Features", 1)[-1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d\S+) \| (\d\S+) \|(.*)$", features, re.MULTILINE)
    missing = [release for release, _, cells in rows if "not run" in cells]
    if missing or not rows:
        raise ValueError(
            f"docs/compatibility.md does not show TensorFlow {', '.join(missing) or 'at all'}; "
            "expected tests of each line; run `tox -m matrix`"
        )
    return [release for release, _, _ in rows]


def verified(root: Path) -> list[str]:
    """Returns a line of Markdown for each page that tests have written."""
    page = "docs/compatibility.md"
    found = releases((root / page).read_text(encoding="utf-8"))
    shown = f"the tests passed on TensorFlow {', '.join(found)}"
    return [f"- {page}, {_written(root, page)}: {shown}."] + [
        f"- {path}, {_written(root, path)}: {what}." for path, what in PAGES.items()
    ]


def notes(version: str | None, root: Path = ROOT) -> str:
    """Returns the notes of a version as Markdown, by default of the one that is being made."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if version is None:
        metadata = configparser.ConfigParser()
        metadata.read(str(root / "setup.cfg"), encoding="utf-8")
        version = metadata["metadata"]["version"]
        if f"## [{version}]" not in changelog:
            version = UNRELEASED
    text = changes(changelog, version)
    return "\n".join([f"# {version}", "", text, "", "## Verified", "", *verified(root), ""])


def _written(root: Path, page: str) -> str:
    """Returns the date and the commit that last wrote a page."""
    command = ["git", "log", "-1", "--format=%cs, commit %h", "--", page]
    try:
        done = subprocess.run(command, cwd=str(root), stdout=subprocess.PIPE, check=False)
        return done.stdout.decode().strip() or "of an unknown commit"
    except OSError:
        return "of an unknown commit"


def main(*arguments: str) -> int:
    """Prints the notes; returns the exit code."""
    try:
        print(notes(*arguments or (None,)), end="")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
