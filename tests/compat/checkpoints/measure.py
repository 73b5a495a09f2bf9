"""Opens a log folder of `experiments.mnist` with the digits, and measures at once.

Prints the step that it goes on from and the accuracy on the test set, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import compat
from experiments.mnist import MNIST
from experiments.training.inputs import data_of
from experiments.training.program import build


def main(settings: dict[str, Any]) -> None:
    runtime = compat.select_runtime(settings["runtime"])
    mnist = MNIST(MNIST.Settings(dataset="digits"))
    program = build(mnist, runtime, data_of(mnist.data()))
    supervisor = compat.Supervisor(logdir=settings["logdir"], save_model_secs=0)
    with supervisor.managed_session() as session:
        values = program.evaluate(session, "test")
        print(json.dumps([session.planned_step, values["accuracy"]]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
