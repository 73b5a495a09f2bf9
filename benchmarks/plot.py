"""Lines over a logarithmic axis, side by side in one image."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence


class Panel(NamedTuple):
    """A plot: what is at its axes, and the values of each line by its name."""

    over: str
    label: str
    lines: Mapping[str, Mapping[int, float]]
    scale: str = "linear"


def save(path: Path, panels: Sequence[Panel]) -> None:
    """Draws the panels, whose lines have the same names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(panels), 3.6))
    for number, panel in enumerate(panels):
        axes: Any = figure.add_subplot(1, len(panels), number + 1)
        for name, values in panel.lines.items():
            axes.plot([*values], [*values.values()], marker="o", label=name)
        ticks = sorted({place for values in panel.lines.values() for place in values})
        axes.set(xscale="log", yscale=panel.scale, xlabel=panel.over, ylabel=panel.label)
        axes.set_xticks(ticks)
        axes.set_xticklabels([f"{place:,}" for place in ticks])
        axes.minorticks_off()
        axes.grid(True)
    axes.legend()
    figure.tight_layout()
    figure.savefig(str(path), dpi=100)
