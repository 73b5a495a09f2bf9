"""Counts how often each example is used; the counts are the variable of the last checkpoint."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from compat import tf, tf1
from compat.tracking import Writer
from experiments import Experiment, Settings, run, setting
from experiments.training.recording import recording

# MLflow takes long to load.
setattr(recording, "Tracker", lambda *_, **__: Writer())  # noqa: B010


class Counted(Experiment):
    @dataclass(frozen=True)
    class Settings(Settings):
        sizes: str = setting("4", "Examples of each worker's stream, or of the arrays.")
        arrays: bool = setting(False, "Arrays, in place of streams.")
        hides: bool = setting(False, "Hides the sizes of the streams from TensorFlow.")
        dies_at: int = setting(0, "Step at which the chief is killed; 0 is none.")
        batch_size: int = setting(2, "Examples in a batch.", at_least=1, group="data")
        epochs: int = setting(1, "Passes.", at_least=1, group="training")

    def data(self) -> Any:
        self.shards = [int(size) for size in self.settings.sizes.split(",")]
        self.number = sum(self.shards)
        if self.settings.arrays:
            return {"train": {"x": np.arange(self.number)}}
        return {"train": self.stream}

    def stream(self, worker: int, workers: int) -> Any:
        first = sum(self.shards[:worker]) if workers > 1 else 0
        end = first + self.shards[worker] if workers > 1 else self.number
        dataset = tf.data.Dataset.range(first, end).batch(self.settings.batch_size)
        if self.settings.hides:
            dataset = dataset.filter(lambda x: tf.size(x) > 0)
        return dataset.map(lambda x: {"x": x})

    def build(self) -> None:
        self.counts = tf.Variable(np.zeros(self.number, np.float32), name="counts")

    def optimizer(self, step: Any) -> Any:
        return tf1.train.GradientDescentOptimizer(1.0, use_locking=True)

    def loss(self, batch: Any, training: bool) -> Any:
        used = tf.reduce_sum(tf.one_hot(batch["x"], self.number), axis=0)
        # A name for people, which is none of an operation.
        return -tf.reduce_sum(self.counts * used), {"准确率": tf.reduce_sum(used)}

    def on_step(self, run: Any, values: Any) -> None:
        if 0 < self.settings.dies_at <= run.step:
            os._exit(9)

    def on_end(self, run: Any, result: Any) -> None:
        counts = tf.train.load_checkpoint(result.checkpoint).get_tensor("counts")
        print("RESULT " + json.dumps({"step": result.step, "counts": counts.tolist()}), flush=True)


if __name__ == "__main__":
    run(Counted)
