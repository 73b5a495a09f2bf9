"""Draws line charts and timelines as SVG; the style sheet of the page colours them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from experiments.report.markup import Markup, element
from experiments.report.run_folder import Curve, is_number
from experiments.report.tasks import Life, names

_WIDTH, _HEIGHT = 480, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 8, 34
_MOST_POINTS = 400  # The most points of a line; more would not be visible.
_ROW = 26
_MOST_DOTS = 40
_TASKS_LEFT = 92


@dataclass(frozen=True)
class Line:
    """A curve in a chart: `colour` is the number of its run, `kind` how it is drawn."""

    name: str
    points: Curve
    colour: int
    kind: str  # "train", "validation", "evaluator", "test" or "other".


def chart(title: str, lines: Sequence[Line]) -> Markup:
    """Returns a chart of the curves of one value over the steps; only finite values are drawn."""
    points = [p for line in lines for p in line.points if is_number(p[1])]
    if not points:
        return element("p", f"{title}: no finite value", class_="note")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = _padded(min(ys), max(ys))
    left, right = min(xs), max(xs)
    right = right if right > left else left + 1

    def x(step: float) -> float:
        return _LEFT + (step - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts: list[Markup] = []
    for tick in ticks(low, high):
        parts.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(tick), y2=y(tick)))
        parts.append(_label(shown(tick), _LEFT - 6, y(tick) + 4, "end"))
    for tick in ticks(left, right):
        parts.append(_label(shown(tick), x(tick), _HEIGHT - _BOTTOM + 16, "middle"))
    parts.append(_label("step", _WIDTH - _RIGHT, _HEIGHT - 3, "end"))
    for line in lines:
        where = f"c{line.colour} {line.kind}"
        for piece in _pieces(line.points):
            drawn = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in thinned(piece))
            parts.append(element("polyline", points=drawn, class_=where))
        finite = [point for point in line.points if is_number(point[1])]
        if line.kind != "train" and len(finite) <= _MOST_DOTS or len(finite) == 1:
            for step, value in finite:
                hint = element("title", f"{line.name}: {shown(value)} at step {step}")
                at = {"cx": round(x(step), 1), "cy": round(y(value), 1)}
                parts.append(element("circle", hint, r=3, class_=where, **at))
    return element("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=title)


def timeline(lives: Sequence[Life]) -> Markup:
    """Returns a picture with a bar for each `Life`, over the seconds since the first start."""
    rows = names(lives)
    start, end = min(life.start for life in lives), max(life.end for life in lives)
    span = max(end - start, 1e-3)
    height = _ROW * len(rows) + 30

    def x(time: float) -> float:
        return _TASKS_LEFT + (time - start) / span * (_WIDTH - _TASKS_LEFT - _RIGHT)

    parts: list[Markup] = []
    for tick in ticks(0, span):
        at = x(start + tick)
        parts.append(element("line", x1=at, x2=at, y1=0, y2=height - 26))
        parts.append(_label(f"{shown(tick)} s", at, height - 10, "middle"))
    for row, name in enumerate(rows):
        parts.append(_label(name, _TASKS_LEFT - 8, _ROW * row + 18, "end"))
        for life in lives:
            if life.task == name:
                hint = element(
                    "title",
                    f"{name}: {life.start - start:.1f} s to {life.end - start:.1f} s, "
                    f"{life.outcome}",
                )
                bar = element(
                    "rect",
                    hint,
                    x=round(x(life.start), 1),
                    y=_ROW * row + 4,
                    width=round(max(x(life.end) - x(life.start), 2), 1),
                    height=_ROW - 8,
                    rx=3,
                    class_=life.kind,
                )
                parts.append(bar)
    return element(
        "svg", *parts, viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_label="Tasks over time"
    )


def ticks(low: float, high: float, number: int = 5) -> list[float]:
    """Returns about `number` round values from `low` to `high`.

    >>> ticks(0, 720)
    [0.0, 200.0, 400.0, 600.0]
    """
    rough = (high - low) / number
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def shown(value: float) -> str:
    """Returns a number in few digits.

    >>> shown(12000), shown(0.9712345), shown(3e-05)
    ('12k', '0.9712', '3e-05')
    """
    if abs(value) >= 1000 and math.isfinite(value):
        return f"{value / 1000:.4g}k"
    return f"{value:.4g}"


def thinned(points: Curve) -> Curve:
    """Returns at most some 400 points of a curve: the lowest and the highest of each stretch."""
    if len(points) <= _MOST_POINTS:
        return points
    size = math.ceil(2 * len(points) / _MOST_POINTS)
    kept: list[tuple[int, float]] = []
    for first in range(0, len(points), size):
        stretch = points[first : first + size]
        ends = (min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1]))
        kept += sorted(set(ends))
    return kept


def _pieces(points: Curve) -> list[Curve]:
    """Returns the pieces of a curve between values that are not finite."""
    pieces: list[Curve] = [[]]
    for point in points:
        if is_number(point[1]):
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def _label(text: str, x: float, y: float, anchor: str) -> Markup:
    return element("text", text, x=round(x, 1), y=round(y, 1), text_anchor=anchor)
