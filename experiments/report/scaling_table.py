"""Writes the results of a scaling study as a table, in Markdown and CSV, and a plot."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from compat.tracking.mlflow import learning_curve

MARKDOWN, CSV, PLOT = "scaling.md", "scaling.csv", "scaling.png"
PUBLISHED = {1: 0.42, 2: 0.58, 3: 0.65}  # Test accuracy after 20 epochs, from a blog post of 2016.
_TOTAL_TIME = re.compile(r"^Total Time: ([\d.]+)s$", re.MULTILINE)
_HEAD = ("mode", "runtime", "workers", "accuracy", "published", "updates", "seconds", "updates/s")


@dataclass(frozen=True)
class Cell:
    """One run of the study."""

    mode: str  # "async" or "sync".
    runtime: str  # "legacy" or "modern".
    workers: int

    @property
    def name(self) -> str:
        """The name of the run and its folder, such as "async-legacy-2"."""
        return f"{self.mode}-{self.runtime}-{self.workers}"


@dataclass(frozen=True)
class Result:
    """The result of one run; a run that failed has no accuracy."""

    cell: Cell
    code: int  # The exit code.
    accuracy: float | None = None  # On the test set, in [0, 1].
    updates: int = 0
    seconds: float = 0.0  # From the chief's first log line to the end of the test.

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of the table, in the order of `_HEAD`."""
        published = PUBLISHED.get(self.cell.workers) if self.cell.mode == "async" else None
        place = (self.cell.mode, self.cell.runtime, str(self.cell.workers))
        old = "" if published is None else f"{published:.2f}"
        if self.accuracy is None:
            return (*place, f"failed ({self.code})", old, "", "", "")
        speed = f"{self.updates / self.seconds:.0f}"
        found = (f"{self.accuracy:.4f}", old, str(self.updates), f"{self.seconds:.1f}", speed)
        return (*place, *found)

    def __str__(self) -> str:
        if self.accuracy is None:
            return f"failed with exit code {self.code}; see output.log in its folder"
        return f"accuracy {self.accuracy:.4f} after {self.updates} updates in {self.seconds} s"


def result(cell: Cell, folder: str, code: int) -> Result:
    """Returns the result of a run with exit code `code`, read from its folder."""
    if code:
        return Result(cell, code)
    step, accuracy = learning_curve.series(folder)["test/accuracy"][-1]
    lines = Path(folder, "console.log").read_text(encoding="utf-8")
    return Result(cell, code, accuracy, step, float(_TOTAL_TIME.findall(lines)[-1]))


def write(results: Sequence[Result], folder: str) -> list[str]:
    """Writes the tables and the plot of the results so far; returns their paths."""
    rows = [_HEAD, *[result.row for result in results]]
    paths = [Path(folder, name) for name in (MARKDOWN, CSV, PLOT)]
    paths[0].write_text(_markdown(rows), encoding="utf-8")
    with open(paths[1], "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    _draw(results, paths[2])
    return [str(path) for path in paths]


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    head, *rest = [" | ".join(cell.ljust(w) for cell, w in zip(row, widths)) for row in rows]
    line = " | ".join("-" * width for width in widths)
    return "".join(f"| {row} |\n" for row in (head, line, *rest))


def _draw(results: Sequence[Result], path: Path) -> None:
    from matplotlib.figure import Figure  # Without pyplot, which needs a display and global state.

    figure = Figure(figsize=(13, 4))
    panels: list[tuple[str, Any]] = [
        ("test accuracy", lambda r: r.accuracy),
        ("seconds", lambda r: r.seconds),
        ("updates per second", lambda r: r.updates / r.seconds),
    ]
    done = [result for result in results if result.accuracy is not None]
    lines = list(dict.fromkeys((result.cell.mode, result.cell.runtime) for result in done))
    for number, (label, value) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number)
        for line in lines:
            of_line = [r for r in done if (r.cell.mode, r.cell.runtime) == line]
            workers = [r.cell.workers for r in of_line]
            axes.plot(workers, [value(r) for r in of_line], marker="o", label=" ".join(line))
        if number == 1:
            axes.plot(list(PUBLISHED), list(PUBLISHED.values()), "k--", label="published in 2016")
        axes.set(xlabel="workers", ylabel=label, xticks=sorted({r.cell.workers for r in done}))
        axes.grid(True)
    axes.legend(*figure.axes[0].get_legend_handles_labels())
    figure.tight_layout()
    figure.savefig(str(path))
