"""Plots the learning curve of a run from its spool, the file with the records for MLflow."""

from __future__ import annotations

import os
from typing import Dict, List, Tuple

from compat.tracking.files import replacing
from compat.tracking.mlflow import spool

FILE = "learning_curve.png"
_PANELS = ("cost", "accuracy")

Series = Dict[str, List[Tuple[int, float]]]


def series(logdir: str) -> Series:
    """Returns the (step, value) points of every metric; a resumed run replaces later points."""
    points: Series = {}
    for record, _ in spool.read(logdir):
        if record["kind"] == "metrics":
            for name, value in record["values"].items():
                line = points.setdefault(name, [])
                while line and line[-1][0] >= record["step"]:
                    line.pop()
                line.append((record["step"], value))
    return points


def draw(logdir: str) -> str | None:
    """Draws every loss and accuracy over the steps; returns the path of the PNG, or None."""
    points = series(logdir)
    panels = {
        panel: sorted(name for name in points if name.split("/")[-1] == panel) for panel in _PANELS
    }
    if not any(panels.values()):
        return None
    from matplotlib.figure import Figure  # Not pyplot, which needs a display and has global state.

    figure = Figure(figsize=(10, 4))
    for place, (panel, names) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), place)
        for name in names:
            marker = "o" if len(points[name]) == 1 else None
            axes.plot(*zip(*points[name]), label=name, marker=marker)
        axes.set(xlabel="step", ylabel=panel)
        axes.grid(True)
        if names:
            axes.legend()
    figure.tight_layout()
    path = os.path.join(logdir, FILE)
    with replacing(path) as file:
        figure.savefig(file, format="png")
    return path
