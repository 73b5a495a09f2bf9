"""Writes the tables of docs/api.md and docs/estimator.md from the rows, and those of `upstream`.

    python -m tests.conformance

A page has a mark where each table begins and ends; the tests compare it with what is written here.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Iterator

HERE = Path(__file__).parent
PAGES = [HERE.parents[1] / "docs" / name for name in ("api.md", "estimator.md")]


def rows(*modules: str) -> Iterator[str]:
    """Yields the lines of the names in some modules of rows."""
    for module in modules:
        table = runpy.run_path(str(HERE / f"{module}.py"))
        missing, differences = (table.get(key, {}) for key in ("MISSING", "DIFFERENCES"))
        for section, names in table["SECTIONS"].items():
            yield from ["", f"## {section}"] if len(modules) > 1 else []
            yield from ["", "| name | legacy | modern | difference |", "|---|---|---|---|"]
            for name in names:
                cells = [f"`{name}`"]
                for runtime in ("legacy", "modern"):
                    cells.append("in one process" if (name, runtime) in missing else "yes")
                yield line(*cells, differences.get(name, ""))


def upstream() -> Iterator[str]:
    """Yields the lines of TensorFlow's own tests."""
    yield from ["", "| tests of | all | pass | the others fail |", "|---|---|---|---|"]
    for row in runpy.run_path(str(HERE.parent / "upstream" / "rows.py"))["ROWS"]:
        yield line(*row.cells)


def line(*cells: object) -> str:
    """Returns a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def written(page: str) -> str:
    """Returns a page with its tables as the rows have them."""
    parts = {
        "names": lambda: rows("rows", "hook_rows", "supervisor_rows"),
        "estimators": lambda: rows("estimator_rows"),
        "upstream": upstream,
    }
    return re.sub(
        r"(<!-- begin (\w+): [^\n]*\n).*?(?=\n<!-- end)",
        lambda found: found.group(1) + "\n".join(parts[found.group(2)]()) + "\n",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text("utf-8")), "utf-8")
