"""Writes tables of the docs: those of the API, of TensorFlow's own tests, and of rules for scripts.

    python -m tests.conformance

A page has a mark where each table begins and ends; the tests compare it with what is written here.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, Iterator, Sequence

from compat.scripts.rules.catalog import RULES

HERE = Path(__file__).parent
PAGES = [
    HERE.parents[1] / "docs" / name for name in ("api.md", "check.md", "estimator.md", "migrate.md")
]
NAMES = ("rows", "layer_rows", "hook_rows", "supervisor_rows")


def rows(*modules: str, pairs: Sequence[str] = ()) -> Iterator[str]:
    """Yields the lines of the names in some modules of rows; `pairs` are those of two workers."""
    heads = ["name", "legacy", "modern", *(["two workers"] if pairs else []), "difference"]
    for table in map(load, modules):
        differences = table.get("DIFFERENCES", {})
        for section, names in table["SECTIONS"].items():
            yield from ["", f"## {section}"] if len(modules) > 1 else []
            yield from ["", line(*heads), "|" + "---|" * len(heads)]
            for name in names:
                cells = [f"`{name}`", "yes", "yes"]
                if pairs:
                    cells.append("yes" if name in pairs else "one worker")
                yield line(*cells, differences.get(name, ""))


def upstream() -> Iterator[str]:
    """Yields the lines of TensorFlow's own tests."""
    table = load("../upstream/rows")
    for name in ("ROWS", "MODERN"):
        of = "tests of" if name == "ROWS" else "on the modern runtime, tests of"
        yield from ["", f"| {of} | all | pass | the others fail |", "|---|---|---|---|"]
        for row in table[name]:
            yield line(*row.cells)


def rules(rewrites: bool) -> Iterator[str]:
    """Yields the lines of the rules that rewrite a script, or of those that only report."""
    yield from ["", line("rule", "gone since", "what it is about"), "|---|---|---|"]
    for rule in RULES:
        if bool(rule.after) == rewrites:
            yield line(f"`{rule.id}`", rule.gone, rule.says)


def load(module: str) -> dict[str, Any]:
    """Returns the names of a module of rows."""
    return runpy.run_path(str(HERE / f"{module}.py"))


def line(*cells: object) -> str:
    """Returns a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def written(page: str) -> str:
    """Returns a page with its tables as the rows have them."""
    parts = {
        "names": lambda: rows(*NAMES, pairs=load("pair_rows")["NAMES"]),
        "estimators": lambda: rows("estimator_rows"),
        "upstream": upstream,
        "rewriting_rules": lambda: rules(rewrites=True),
        "reporting_rules": lambda: rules(rewrites=False),
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
