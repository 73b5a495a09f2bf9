"""Shows a run in a notebook: a progress bar, which is updated in place, and the curves."""

from __future__ import annotations

import io
import sys
import time
from typing import Any, Mapping, Sequence, TextIO

_SECS = 0.2  # Between two updates of the bar.
_WIDTH, _HEIGHT = 4.5, 3.0  # Size of a chart in inches.
_MOST_CHARTS = 4


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    return hasattr(sys, "ps1") and "ipykernel" in sys.modules


class Bar:
    """Progress as one output of a cell, with the methods of `tqdm` that `Console` uses."""

    def __init__(self, total: int, initial: int) -> None:
        from IPython.display import display

        self.n = self._first = initial
        self._total = total
        self._started = self._shown = time.monotonic()
        self._handle = display(self._drawn(), display_id=True)

    def update(self, steps: int) -> None:
        """Advances the bar by a number of steps."""
        self.n += steps
        if time.monotonic() - self._shown >= _SECS:
            self._shown = time.monotonic()
            self._handle.update(self._drawn())

    def write(self, text: str, file: TextIO) -> None:
        """Prints a line, as a separate output in a notebook."""
        print(text, file=file)

    def close(self) -> None:
        """Shows the last step."""
        self._handle.update(self._drawn())

    def _drawn(self) -> Any:
        from IPython.display import HTML

        done, remaining = self.n - self._first, ""
        if done and self.n < self._total:
            secs = (time.monotonic() - self._started) / done * (self._total - self.n)
            remaining = f", {secs:.0f} s left"
        bar = f'<progress max="{self._total}" value="{self.n}"></progress>'
        return HTML(f"{bar} step {self.n} of {self._total}{remaining}")


def show_curves(curves: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """Charts the training and validation curves of up to four values, such as the loss."""
    from IPython.display import Image, display
    from matplotlib.figure import Figure

    measures: dict[str, list[str]] = {}
    for name in sorted(curves):
        split, _, measure = name.partition("/")
        if split in ("train", "validation"):
            measures.setdefault(measure, []).append(name)
    # Evaluated curves come first.
    shown = sorted(measures, key=lambda measure: -len(measures[measure]))[:_MOST_CHARTS]
    if not shown:
        return
    figure = Figure(figsize=(_WIDTH * len(shown), _HEIGHT))
    for axes, measure in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown):
        for name in measures[measure]:
            axes.plot(*zip(*curves[name]), label=name.partition("/")[0])
        axes.set(title=measure, xlabel="step")
        axes.legend()
    figure.tight_layout()
    png = io.BytesIO()
    figure.savefig(png, format="png")
    display(Image(data=png.getvalue()))
