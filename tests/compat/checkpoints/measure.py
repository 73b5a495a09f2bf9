"""Opens a log folder of `experiments.mnist` with the digits, and measures at once.

Prints the step that it goes on from and the accuracy on the test set, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import compat
import models
from compat import datasets, tf
from experiments.evaluation.evaluate import evaluate
from experiments.training import step


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    with compat.device(None):
        compat.get_or_create_global_step()
        signature = [tf.TensorSpec([None, 28, 28], tf.uint8), tf.TensorSpec([None], tf.int32)]
        measured = compat.step(step.evaluation_step(models.MLP()), signature, on_coordinator=True)
    supervisor = compat.Supervisor(logdir=settings["logdir"], save_model_secs=0)
    with supervisor.managed_session() as session:
        values = evaluate(session, measured, datasets.load("digits", None).test)
        print(json.dumps([session.planned_step, values["accuracy"]]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
