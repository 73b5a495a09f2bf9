"""`python -m experiments`: the programs that come with the package."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

_HERE = Path(__file__).parent


if __name__ == "__main__":
    print("usage: python -m experiments.PROGRAM [--help] [flags]\n")
    found = {path.stem: path for path in _HERE.glob("[!_]*.py")}
    found.update((path.parent.name, path) for path in _HERE.glob("*/__main__.py"))
    for name, path in sorted(found.items()):
        # Read, not imported: a program defines its flags when it is imported.
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        purpose = text.partition("\n")[0]
        print(f"  {name:<16} {purpose}")
    print("\nAn experiment of your own is one file: see docs/experiments.md.")
    if sys.argv[1:] and not sys.argv[1].startswith("-"):
        sys.stderr.write(
            f"error: {sys.argv[1]!r} is not an argument of this list; run a program as in: "
            "python -m experiments.mnist\n"
        )
        sys.exit(2)
