"""The matrix on one page: `python -m tests.matrix SETTINGS RESULTS PAGE`, run by tox.

SETTINGS is tox.ini, which says which lines there are. Each leaves what its tests have shown as a
file in the folder RESULTS; see matrix_results.py. Each cell of the page is such a result.
"""

from __future__ import annotations

import configparser
import json
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple

FEATURES = ["legacy", "modern", "lifted TF1 model", "sync", "scripts", "checkpoint exchange"]
LOSSES = ["one process, legacy", "one process, modern", "cluster, legacy", "cluster, modern"]
# Coarse, and well above what was seen, 1e-6 to 2e-6, lest another processor make another page.
BOUNDS = [3e-6, 5e-6]
NOT_RUN = "**not run**"
RUNTIMES = ["legacy", "modern"]

PAGE = """\
# Compatibility

Written by `tox -e matrix-report` from what the tests of each line have shown; see `tox.ini`.

## Features

{features}

A number is how many tests of the feature passed on that line, all of them on real processes.
"none" stands where TensorFlow lacks what the feature is made of: 1.15 has no `ClusterCoordinator`.
"**not run**" stands where nothing was shown, and no page with it is complete.

- **legacy**, **modern**: the losses of one process and of a cluster, and trainings on one parameter
  server and two workers, which learn digits, read back from event files, MLflow's store and
  checkpoints.
- **lifted TF1 model**: a model written with `get_variable` and `minimize`, on either runtime.
- **sync**: two workers make one update of their whole batch, on each runtime.
- **scripts**: through `python -m compat run`, the example of 2016 and the queue that processes
  share, as their documents have them (a stand-in where those are absent), and a model whose losses
  are those that TensorFlow 1.15.5 printed.
- **checkpoint exchange**: checkpoints of TensorFlow 1.15 and 2.21, from either runtime, are resumed
  on each runtime, and each line writes the same; originals of 1.4 and 1.15 are converted.

TensorFlow 2.17 heeds no setting of its log: a task that serves on the modern runtime shows two
notes of the service to which the coordinator connects. They mean nothing.

## The same numbers

{losses}

The largest difference of thirty losses from those of TensorFlow 1.15.5, over all models, the lifted
one among them, and optimizers, in float32. The losses begin between 4 and 11; the limit is 5e-6, so
that no two cells stand for losses more than 1e-5 apart.
"""


Result = Dict[str, Any]


class Line(NamedTuple):
    """A line of the matrix.

    Attributes:
      python: the version of Python that it is tested with, such as "3.8".
      tensorflow: the line itself, such as "2.4".
      may_fail: whether it is still to come.
    """

    python: str
    tensorflow: str
    may_fail: bool

    @property
    def environment(self) -> str:
        """Its name for tox, such as "py38-tf2.4"."""
        return f"py{self.python.replace('.', '')}-tf{self.tensorflow}"


def lines(settings: Path) -> list[Line]:
    """Returns the lines of the matrix of a tox.ini, the oldest first."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(str(settings), encoding="utf-8")
    may_fail = re.findall(r"tf([\d.]+): true", parser.get("testenv", "ignore_outcome", fallback=""))
    found = []
    for minor, major, numbers in re.findall(
        r"py3(\d+)-tf(\d)\.\{?([\d, ]+)\}?, \\", parser["tox"]["labels"]
    ):
        for number in numbers.split(","):
            line = f"{major}.{number.strip()}"
            found.append(Line(f"3.{minor}", line, line in may_fail))
    return sorted(found, key=lambda line: [int(n) for n in line.tensorflow.split(".")])


def main(argv: list[str]) -> int:
    """Writes the page; returns 1 if a test failed or was not run, unless on a line to come."""
    settings, folder, page = map(Path, argv)
    results = {line: read(folder, line) for line in lines(settings)}
    page.write_text(
        PAGE.format(
            features=table(FEATURES, results, tested), losses=table(LOSSES, results, difference)
        ),
        encoding="utf-8",
    )
    failed = {line: line.tensorflow for line in results if results[line]["failed"]}
    not_run = {line: missing(line, results[line]) for line in results}
    not_run = {line: words for line, words in not_run.items() if words}
    said = [f"{page}: {len(results)} lines"]
    for name, found in (("failed", failed), ("not run", not_run)):
        said += [f"{name}: {', '.join(found.values())}"] if found else []
    print("; ".join(said))
    return int(not all(line.may_fail for line in {**failed, **not_run}))


def read(folder: Path, line: Line) -> Result:
    """Returns what a line has shown; of one that was not run, that there was nothing."""
    file = folder / f"{line.environment}.json"
    if file.exists():
        found: Result = json.loads(file.read_text("utf-8"))
        return found
    nothing: Result = {"tensorflow": line.tensorflow, "python": line.python, "runtimes": RUNTIMES}
    return {**nothing, "failed": [], "features": {}, "differences": {}}


def missing(line: Line, result: Result) -> str:
    """Returns the line, and what was not run on it if that is not all; "" if all was run."""
    absent = [name for name in FEATURES if tested(result, name) == NOT_RUN]
    absent += [name for name in LOSSES if difference(result, name) == NOT_RUN]
    if len(absent) == len(FEATURES + LOSSES):
        return line.tensorflow
    return f"{line.tensorflow} ({'; '.join(absent)})" if absent else ""


def table(
    columns: list[str], results: dict[Line, Result], cell: Callable[[Result, str], str]
) -> str:
    head = ["TensorFlow", "Python", *columns]
    rows = [head, ["---"] * len(head)]
    for result in results.values():
        rows.append([result["tensorflow"], result["python"], *(cell(result, c) for c in columns)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def tested(result: Result, feature: str) -> str:
    found = result["features"].get(feature, {"passed": 0, "failed": []})
    if found["failed"]:
        return f"**{len(found['failed'])} failed**"
    return str(found["passed"]) if found["passed"] else reason(result, feature)


def difference(result: Result, where: str) -> str:
    found = result["differences"].get(where)
    if found is None:
        return reason(result, where.rpartition(", ")[2])
    return next((f"< {bound:.0e}" for bound in BOUNDS if found < bound), f"**{found:.1e}**")


def reason(result: Result, feature: str) -> str:
    """Returns why nothing was shown: a feature that is a runtime may be lacking in TensorFlow."""
    lacks = feature in RUNTIMES and feature not in result["runtimes"]
    return "none" if lacks else NOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
