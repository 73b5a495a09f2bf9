"""An experiment whose calls of several steps take long to build: 12,000 operations a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compat import tf, tf1
from compat.tracking import Writer
from experiments import Experiment, Settings, run, setting
from experiments.training.recording import recording

# MLflow takes long to load.
setattr(recording, "Tracker", lambda *_, **__: Writer())  # noqa: B010


class ManyOperations(Experiment):
    @dataclass(frozen=True)
    class Settings(Settings):
        operations: int = setting(12_000, "Operations of a step.", at_least=1)
        batch_size: int = 2
        epochs: int = 10**6

    def data(self) -> Any:
        return {"train": {"x": np.ones([100, 1], np.float32)}}

    def build(self) -> None:
        self.weight = tf.Variable([0.5], name="weight")

    def loss(self, batch: Any, training: bool) -> Any:
        value = self.weight * tf.reduce_mean(batch["x"])
        for _ in range(self.settings.operations):
            value = tf.sin(value)
        return tf.reduce_sum(tf.stop_gradient(value) + self.weight**2), {}

    def optimizer(self, step: Any) -> Any:
        return tf1.train.GradientDescentOptimizer(0.01)


if __name__ == "__main__":
    run(ManyOperations)
