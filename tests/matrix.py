"""The matrix on one page: `python -m tests.matrix RESULTS PAGE`, run by `tox -e matrix-report`.

Every line of the matrix leaves what its tests have shown as a file in the folder RESULTS; see
`MatrixResults` in conftest.py. Each cell of the page is such a result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FEATURES = ["legacy", "modern", "lifted TF1 model", "sync", "scripts", "checkpoint exchange"]
LOSSES = ["one process, legacy", "one process, modern", "cluster, legacy", "cluster, modern"]
# Coarse enough to be the same on another processor.
BOUNDS = [1e-6, 1e-5]

PAGE = """\
# Compatibility

Written by `tox -e matrix-report` from what the tests of each line have shown; see `tox.ini`.

## Features

{features}

A number is how many tests of the feature passed on that line, all of them on real processes.
"none" stands where TensorFlow lacks what the feature is made of: 1.15 has no `ClusterCoordinator`.

- **legacy**, **modern**: the losses of one process and of a cluster, and trainings on parameter
  servers and two workers, read back from event files, MLflow's store and checkpoints.
- **lifted TF1 model**: a model written with `get_variable` and `minimize`, on either runtime.
- **sync**: two workers make one update of their whole batch, on each runtime.
- **scripts**: the programs of the documents of 2016, unmodified, through `python -m compat run`.
- **checkpoint exchange**: checkpoints of TensorFlow 1.15 and 2.21, from either runtime, are gone on
  with on each runtime; originals of 1.4 and 1.15 are converted.

TensorFlow 2.17 heeds no setting of its log: a task that serves on the modern runtime shows two
notes of the service to which the coordinator connects. They mean nothing.

## The same numbers

{losses}

The largest difference of thirty losses from those of TensorFlow 1.15.5, over all models and
optimizers, in float32. The losses begin between 4 and 11; the limit is 1e-5.
"""


def main(argv: list[str]) -> int:
    """Writes the page; returns 1 if a test failed, unless on a line that is to come."""
    folder, page = Path(argv[0]), Path(argv[1])
    results = [json.loads(file.read_text("utf-8")) for file in folder.glob("*.json")]
    results.sort(key=lambda result: [int(n) for n in result["tensorflow"].split(".")[:2]])
    page.write_text(
        PAGE.format(
            features=table(FEATURES, results, lambda result, name: tested(result, name)),
            losses=table(LOSSES, results, lambda result, name: difference(result, name)),
        ),
        encoding="utf-8",
    )
    failed = [r["tensorflow"] for r in results if any(f["failed"] for f in r["features"].values())]
    print(f"{page}: {len(results)} lines" + (f", failed: {', '.join(failed)}" if failed else ""))
    return 1 if any("rc" not in version for version in failed) else 0


def table(columns: list[str], results: list[dict[str, Any]], cell: Any) -> str:
    head = ["TensorFlow", "Python", *columns]
    rows = [head, ["---"] * len(head)]
    for result in results:
        rows.append([result["tensorflow"], result["python"], *(cell(result, c) for c in columns)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def tested(result: dict[str, Any], feature: str) -> str:
    found = result["features"].get(feature, {"passed": 0, "failed": []})
    if found["failed"]:
        return f"**{len(found['failed'])} failed**"
    return str(found["passed"]) if found["passed"] else "none"


def difference(result: dict[str, Any], where: str) -> str:
    found = result["differences"].get(where)
    if found is None:
        return "none"
    return next((f"< {bound:.0e}" for bound in BOUNDS if found < bound), f"**{found:.1e}**")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
