"""Writes the page of a report: settings, results, curves, tasks and samples of runs."""

from __future__ import annotations

import base64
import itertools
from typing import Sequence

from experiments.report.chart import Line, chart, shown, timeline
from experiments.report.markup import Markup, element, joined
from experiments.report.run_folder import RunFolder
from experiments.report.style import NUMBER_OF_COLOURS, STYLE
from experiments.report.tasks import Life, launches, names, updates

_SPLITS = ("train", "validation", "evaluator", "test", "best_test")
_LEGEND = "Thin: train. Thick: validation. Dashed: an evaluator. Ringed dot: test."
_DATA = "data:image/png;base64,"
_ENLARGED_PX = 84  # Smaller images are shown in this width.
_Row = Sequence[str]


def page(runs: Sequence[RunFolder]) -> str:
    """Returns the HTML of a report, in ASCII alone."""
    title = "Report: " + ", ".join(run.name for run in runs)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    body = element(
        "body",
        element("h1", title),
        _legend(runs),
        *_section("Settings", _settings(runs)),
        *_section("Results", _results(runs)),
        *_section("Curves", _curves(runs)),
        *_section("Tasks", _tasks(runs)),
        *_section("Samples", _samples(runs)),
    )
    text = f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _section(title: str, parts: list[Markup]) -> list[Markup]:
    return [element("section", element("h2", title), *parts)] if parts else []


def _legend(runs: Sequence[RunFolder]) -> Markup:
    keys = [
        element("span", element("i", class_=f"c{_colour(i)}"), run.name)
        for i, run in enumerate(runs)
    ]
    return element("p", *keys, class_="legend")


def _colour(index: int) -> int:
    return index % NUMBER_OF_COLOURS


def _table(rows: Sequence[tuple[_Row, bool]], head: _Row) -> Markup:
    """Returns a table; `rows` are pairs of the cells and whether the row is highlighted."""
    made = [element("tr", *[element("th", cell) for cell in head])]
    for (name, *cells), marked in rows:
        row = [element("th", name), *[element("td", cell) for cell in cells]]
        made.append(element("tr", *row, **({"class_": "differs"} if marked else {})))
    return element("div", element("table", *made), class_="wide")


def _settings(runs: Sequence[RunFolder]) -> list[Markup]:
    """Returns a table of the settings in which the runs differ, and then one of all others."""
    columns = [{**run.settings, **run.facts} for run in runs]
    known = list(dict.fromkeys(name for column in columns for name in column))
    rows = [[name, *[column.get(name, "") for column in columns]] for name in known]
    differing = [row for row in rows if len(set(row[1:])) > 1]
    alike = [row for row in rows if len(set(row[1:])) == 1]
    head = ["setting", *[run.name for run in runs]]
    if len(runs) == 1:
        return [_table([(row, False) for row in rows], head)] if rows else []
    parts = []
    if differing:
        parts.append(_table([(row, True) for row in differing], head))
    else:
        parts.append(element("p", "The runs have the same settings.", class_="note"))
    if alike:
        rest = _table([(row[:2], False) for row in alike], ["setting", "all runs"])
        parts.append(element("details", element("summary", "Settings alike in all runs"), rest))
    return parts


def _results(runs: Sequence[RunFolder]) -> list[Markup]:
    """Returns a table of the values of the last and of the best checkpoint of each run."""
    head = ["value"]
    columns: list[dict[str, str]] = []
    for run in runs:
        for title, step, split in (("last", run.last, "test"), ("best", run.best, "best_test")):
            if title == "best" and step is None:
                continue
            head.append(f"{run.name}: {title}" if len(runs) > 1 else title)
            columns.append(_values(run, step, split))
    known = dict.fromkeys(name for column in columns for name in column)
    order = sorted(known, key=lambda name: (name != "step", not name.startswith("test/"), name))
    rows = [([name, *[column.get(name, "") for column in columns]], False) for name in order]
    ended = [element("p", f"{run.name}: {run.status}", class_="note") for run in runs]
    return [*ended, *([_table(rows, head)] if rows else [])]


def _values(run: RunFolder, step: int | None, split: str) -> dict[str, str]:
    """Returns the step of a checkpoint, and its values on the test and validation splits.

    The names of the curves with its test values begin with `split`: "test" or "best_test".
    """
    if step is None:
        return {}
    found = {"step": str(step)}
    # If the best checkpoint is also the last, its test values may be recorded as those of the last.
    for part in {"test": "", split: ""} if step == run.last else {split: ""}:
        for name, points in run.curves.items():
            if name.startswith(part + "/"):
                found["test" + name[len(part) :]] = shown(points[-1][1])
    values = dict(run.evaluations.get(step, {}))
    for name, points in run.curves.items() if not values else ():
        at = [number for point, number in points if point == step]
        if at and name.startswith("validation/"):
            values[name] = at[-1]
    return {**found, **{name: shown(value) for name, value in values.items()}}


def _curves(runs: Sequence[RunFolder]) -> list[Markup]:
    """Returns a chart for each value, with the curves of all splits and all runs."""
    charts: dict[str, list[Line]] = {}
    for i, run in enumerate(runs):
        for name, points in run.curves.items():
            split, _, value = name.partition("/")
            if split == "best_test":
                continue
            known = split in _SPLITS and bool(value)
            title, kind = (value, split) if known else (name, "other")
            line = Line(f"{run.name} {name}", points, _colour(i), kind)
            charts.setdefault(title, []).append(line)
    if not charts:
        return []
    order = sorted(charts, key=lambda t: (all(line.kind == "other" for line in charts[t]), t))
    figures = [
        element("figure", element("figcaption", title), chart(title, charts[title]))
        for title in order
    ]
    return [
        element("p", _LEGEND, class_="note"),
        element("div", *figures, class_="grid"),
    ]


def _tasks(runs: Sequence[RunFolder]) -> list[Markup]:
    """Returns a timeline and a table of the tasks of each run, for each launch."""
    parts: list[Markup] = []
    for run in runs:
        groups = launches(run.lives)
        for number, lives in enumerate(groups, 1):
            title = run.name if len(groups) == 1 else f"{run.name}, launch {number}"
            figure = element("figure", timeline(lives))
            parts += [element("div", element("h3", title), figure, _ends(run, lives))]
    return [element("div", *parts, class_="grid")] if parts else []


def _ends(run: RunFolder, lives: Sequence[Life]) -> Markup:
    made = updates(run.events, lives)
    rows = []
    for name in names(lives):
        own = [life for life in lives if life.task == name]
        up = sum(life.end - life.start for life in own)
        groups = itertools.groupby(life.outcome for life in own)
        counted = [(len(list(same)), outcome) for outcome, same in groups]
        ends = [f"{n} x {outcome}" if n > 1 else outcome for n, outcome in counted]
        cells = [name, f"{up:.1f} s", str(len(own) - 1), ", ".join(ends)]
        if made:
            count, stale = made.get(name, (None, 0.0))
            cells += ["", ""] if count is None else [str(count), f"{stale:.2f}"]
        rows.append((cells, any(life.kind == "bad" for life in own)))
    head = ["task", "up", "restarts", "ends"]
    return _table(rows, [*head, "updates", "staleness"] if made else head)


def _samples(runs: Sequence[RunFolder]) -> list[Markup]:
    """Returns the images of all runs by name, those of the same name side by side."""
    parts: list[Markup] = []
    for name in sorted({name for run in runs for name in run.images}):
        panels = []
        for run in runs:
            found = run.images.get(name)
            if found is None:
                continue
            size = {"width": _ENLARGED_PX} if 0 < found.width < _ENLARGED_PX else {}
            images = [
                element(
                    "img", src=_DATA + base64.b64encode(png).decode(), alt=f"{name} {i}", **size
                )
                for i, png in enumerate(found.pngs)
            ]
            title = element("h3", f"{run.name}: {name}, step {found.step}")
            panels.append(element("div", title, joined(images), class_="samples"))
        parts.append(element("div", *panels, class_="grid"))
    return parts
