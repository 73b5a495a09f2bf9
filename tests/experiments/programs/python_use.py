"""Runs an experiment from Python, twice; prints the results as one line of JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from compat.errors import UserError
from experiments import run
from experiments.evaluation.metrics import AUC

if TYPE_CHECKING:
    from tests.experiments.programs.cancer import Cancer
else:
    from cancer import Cancer


class Unlabelled(Cancer):
    """Has a metric of an output that `loss` does not return."""

    def metrics(self) -> dict[str, AUC]:
        return {"auc": AUC("truth")}


def main(runtime: str, folder: str) -> None:
    before = dict(os.environ), logging.getLogger().level
    results = [
        run(Cancer, runtime=runtime, hidden=8, epochs=epochs, logdir=f"{folder}/{epochs}")
        for epochs in (8, 4)
    ]
    refusals = []
    for wrong in ({"hidden": 0}, {"strategy": "ps"}, {"hidden": "many"}):
        try:
            run(Cancer, **wrong)
        except UserError as error:
            refusals.append(str(error))
    try:
        run(Unlabelled, runtime=runtime, logdir=f"{folder}/unlabelled")
    except UserError as error:
        refusals.append(str(error))
    assert not os.path.exists(f"{folder}/unlabelled")
    found = {name: value for name, value in os.environ.items() if before[0].get(name) != value}
    report = [asdict(result) for result in results]
    print(json.dumps({"results": report, "refusals": refusals, "environment": sorted(found)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
