"""Makes calls of updates by Downpour and by elastic averaging; prints the variables after each."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any, Mapping

import numpy as np

import compat
from compat import tf, tf1
from experiments.training.updates.local_updates import downpour
from experiments.training.updates.local_updates.elastic import ElasticCopies

PERIOD, SHARE, RATE = 3, 0.25, 0.1
ALGORITHMS = {"downpour": downpour.Copies(), "easgd": ElasticCopies(SHARE)}


class Line:
    """A linear model with a variable of `build` and one that is made when the loss is called."""

    settings = SimpleNamespace(seed=1, accumulate=1, check_numerics=False)

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self) -> None:
        self.weight = tf1.get_variable(f"{self.name}/weight", initializer=tf.constant([1.0, -1.0]))

    def loss(self, batch: Mapping[str, Any], training: bool) -> Any:
        bias = tf1.get_variable(f"{self.name}/bias", initializer=0.5)
        outputs = tf.linalg.matvec(batch["x"], self.weight) + bias
        return tf.reduce_mean((outputs - batch["y"]) ** 2)

    def learning_rate(self, step: Any) -> Any:
        return RATE

    def optimizer(self, step: Any) -> Any:
        return tf1.train.GradientDescentOptimizer(RATE)

    def gradients(self, pairs: Any) -> Any:
        return pairs


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    global_step = compat.get_or_create_global_step()
    steps = {}
    for name, copies in ALGORITHMS.items():
        line = Line(name)
        with copies.scope():
            line.build()
            update = downpour.training_step(line, global_step, copies, PERIOD, stale=False)
            steps[name] = compat.step(
                lambda x, y, update=update: update({"x": x, "y": y}),
                [tf.TensorSpec([PERIOD, 4, 2]), tf.TensorSpec([PERIOD, 4])],
                updates=PERIOD,
            )
    values = compat.step(lambda: {name: centers(c) for name, c in ALGORITHMS.items()}, [])
    found: dict[str, list[Any]] = {name: [] for name in steps}
    with compat.Supervisor(logdir=None).managed_session() as session:
        for x, y in zip(settings["x"], settings["y"]):
            for train in steps.values():
                session.run(train, np.float32(x), np.float32(y))
            session.drain()
            seen = session.run(values)
            for name in found:
                found[name].append(np.asarray(seen[name]).tolist())
    print(json.dumps(found))


def centers(copies: downpour.Copies) -> Any:
    """Returns the variables as one vector."""
    return tf.concat([tf.reshape(variable, [-1]) for variable, _ in copies.pairs], 0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
