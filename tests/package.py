"""Verifies the archives of a release: `python -m tests.package FOLDER`, by `tox -e package`.

In FOLDER, builds the source archive and, from that, the wheel, checks what a package index would
show of them, and trains on the embedded digits where the wheel is all that is installed. Then
FOLDER/notes.md has the notes of the release, which say what was verified.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests import release_notes

_TRAIN = ("--dataset=digits", "--epochs=2", "--logdir=run")
_DEADLINE_SECS = 600.0


def call(*words: str | Path, cwd: Path | None = None) -> None:
    """Runs a command to its end; does not return from one that fails."""
    print("+", *words, flush=True)
    code = subprocess.run(words, cwd=cwd, timeout=_DEADLINE_SECS, check=False).returncode
    if code:
        sys.exit(f"package: FAILED: {words[0]} exited with {code}, expected 0")


def main(folder: str) -> None:
    """Builds, checks, installs and runs, in the subfolders of `folder`."""
    dist, fresh, empty = (Path(folder).resolve() / name for name in ("dist", "fresh", "empty"))
    for path in (dist, fresh, empty):
        shutil.rmtree(path, ignore_errors=True)
    empty.mkdir(parents=True)
    call(sys.executable, "-m", "build", "--quiet", "--installer=uv", "--outdir", dist)
    call(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir()))
    (wheel,) = dist.glob("*.whl")
    python = fresh / "bin" / "python"
    call("uv", "venv", "--quiet", "--python", sys.executable, fresh)
    call("uv", "pip", "install", "--quiet", "--python", python, wheel)
    call(python, "-m", "experiments.mnist", *_TRAIN, cwd=empty)
    if not (empty / "run" / "complete.json").exists():
        sys.exit(f"package: FAILED: the run left no complete.json in {empty / 'run'}")
    lines = [
        f"- {archive.name}, SHA-256 {hashlib.sha256(archive.read_bytes()).hexdigest()}: "
        "built, and its metadata passed `twine check --strict`."
        for archive in sorted(dist.iterdir())
    ]
    lines.append(
        f"- {wheel.name}: `python -m experiments.mnist {' '.join(_TRAIN)}` completed where only "
        f"the wheel and what it requires were installed, on Python {platform.python_version()}."
    )
    notes = Path(folder).resolve() / "notes.md"
    notes.write_text(release_notes.notes(None) + "\n".join([*lines, ""]), encoding="utf-8")
    print(f"package: passed; {notes} has the notes of the release")


if __name__ == "__main__":
    main(*sys.argv[1:])
