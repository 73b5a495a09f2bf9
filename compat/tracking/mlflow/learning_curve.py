"""Plots the learning curve of a run from its spool, the file with the records for MLflow."""

from __future__ import annotations

import math
import os
from typing import Dict, List, Tuple

from compat.tracking.files import replacing
from compat.tracking.mlflow import spool

FILE = "learning_curve.png"
_SPLITS = ("train", "validation", "test", "best_test")
_MEASURES = ("cost", "loss", "accuracy")  # Drawn under any name, such as "tower_0/loss".
_COLUMNS = 2

Series = Dict[str, List[Tuple[int, float]]]


def series(logdir: str) -> Series:
    """Returns the (step, value) points of each metric; a resumed run replaces those it repeats."""
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
    """Draws each measure of a split, such as "validation/loss", over the steps.

    A measure has one panel with its curves for all splits.

    Returns:
      The path of the PNG, or None if there is no measure.
    """
    points = series(logdir)
    panels: dict[str, list[str]] = {}
    for name in points:
        split, _, measure = name.partition("/")
        if split in _SPLITS and measure:
            panels.setdefault(measure, []).append(name)
        elif name.split("/")[-1] in _MEASURES:
            panels.setdefault(name.split("/")[-1], []).append(name)
    if not panels:
        return None
    from matplotlib.figure import Figure  # Not pyplot, which needs a display and has global state.

    rows = math.ceil(len(panels) / _COLUMNS)
    figure = Figure(figsize=(5 * _COLUMNS, 4 * rows))
    for place, (panel, names) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, _COLUMNS, place)
        for name in sorted(names):
            marker = "o" if len(points[name]) == 1 else None
            axes.plot(*zip(*points[name]), label=name, marker=marker)
        axes.set(xlabel="step", ylabel=panel)
        axes.grid(True)
        axes.legend()
    figure.tight_layout()
    path = os.path.join(logdir, FILE)
    with replacing(path) as file:
        figure.savefig(file, format="png")
    return path
