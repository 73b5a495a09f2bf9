"""`python -m experiments`: the programs that come with the package."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

_LIBRARY = {"__init__", "__main__", "experiment", "main"}


def programs() -> dict[str, str]:
    """Returns the first line of each program's docstring, by the program's name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _LIBRARY:
            # Read, not imported: a program defines its flags when it is imported.
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[path.stem] = text.partition("\n")[0]
    return found


def main() -> int:
    """Prints the programs; returns the exit code."""
    print("usage: python -m experiments.PROGRAM [--help] [flags]\n")
    for name, purpose in programs().items():
        print(f"  {name:<16} {purpose}")
    print("\nAn experiment of your own is one file: see docs/experiments.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
