"""Pairs of measurements as a Markdown table."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Sequence

BEGIN = "<!-- updates: written by python -m benchmarks.updates --write -->"
END = "<!-- updates: end -->"
COLUMNS = ["ms an update", "speed (lowest to highest)", "CPU ms", "CPU, first/this", "peak MiB"]
HEADER = ["runtime", "measure", "ours", "twin", "ours/twin", "lowest", "highest"]


def row(runtime: str, measure: str, pairs: Sequence[tuple[float, float]]) -> list[str]:
    """Returns the cells of a row: medians of each side, and the ratio's median and range.

    The pairs are ours and the twin's, of runs that followed each other.
    """
    ratios = [ours / twin for ours, twin in pairs]
    sides = [f"{median(side):.0f}" for side in zip(*pairs)]
    shown = [f"{ratio:.2f}" for ratio in (median(ratios), min(ratios), max(ratios))]
    return [runtime, measure, *sides, *shown]


def markdown(rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> str:
    """Returns the table, its columns aligned."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        line([cell.ljust(width) for cell, width in zip(cells, widths)])
        for cells in [header, rule, *rows]
    )


def head(header: Sequence[str]) -> str:
    """Returns the first two lines of a table whose rows are printed as they are measured."""
    return f"{line(header)}\n{line(['-' * len(name) for name in header])}"


def line(cells: Sequence[str]) -> str:
    """Returns a row of a table."""
    return f"| {' | '.join(cells)} |"


def write(document: Path, text: str) -> None:
    """Puts `text` between the two marker comments of a document.

    Raises:
      ValueError: the document has not both of them.
    """
    before, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{document} lacks one of the lines {BEGIN!r} and {END!r}; add it")
    document.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
