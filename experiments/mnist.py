r"""Trains a network on MNIST: in one process, with parameter servers, or on workers in step.

A cluster on this machine, a task of one on several machines, and an evaluator beside a run:

    python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2
    python -m experiments.mnist --strategy=ps --job_name=ps --ps_hosts=a:2222 --worker_hosts=b:2222
    python -m experiments.mnist --job_name=evaluator --logdir=runs/1
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compat import datasets, tf
from experiments import Data, Experiment, Settings, run, setting
from experiments.recording.images import as_images


class MNIST(Experiment):
    """Handwritten digits, or pieces of clothing, in 28 x 28 grey pixels."""

    monitor, mode = "validation/accuracy", "max"
    loss_name = "cost"  # As the example of 2016 calls it.
    presets = {
        "2016": {"optimizer": "sgd", "learning_rate": 0.001, "epochs": 20, "initial": "normal"}
    }

    @dataclass(frozen=True)
    class Settings(Settings):
        """What can be chosen for this experiment beside the settings of every one."""

        dataset: str = setting(
            "auto",
            "Data set; auto is MNIST if it can be had, else scikit-learn's digits.",
            choices=("mnist", "fashion_mnist", "digits", "auto"),
            group="data",
        )
        data_dir: str | None = setting(
            None, "Folder of the data; default $MNIST_DATA_DIR, else a cache.", group="data"
        )
        model: str = setting("mlp", "Network.", choices=("mlp", "cnn"))
        initial: str = setting("scaled", "Initial weights of mlp.", choices=("scaled", "normal"))
        learning_rate: float = 0.003
        epochs: int = 5

    @classmethod
    def shared_flags(cls, settings: Any) -> list[str]:
        """Lets one process find out what `auto` is, so that all tasks train on the same data."""
        if settings.dataset != "auto":
            return []
        return [f"--dataset={datasets.load('auto', settings.data_dir).name}"]

    def data(self) -> Any:
        found: Any = datasets.load(self.settings.dataset, self.settings.data_dir)
        self.first_images = found.train.images[:16, ..., np.newaxis]
        about = {"name": found.name, "source": found.source, "checksum": found.checksum}
        return Data(**found.splits(), **about)

    def build(self) -> None:
        import models  # Not at the top: its classes need TensorFlow, and --help does not.

        seed, initial = self.settings.seed, self.settings.initial
        cnn = self.settings.model == "cnn"
        self.model = models.CNN(seed) if cnn else models.MLP(seed, initial)

    def loss(self, batch: Any, training: bool) -> Any:
        import models

        pixels = tf.cast(tf.reshape(batch["images"], [-1, 28 * 28]), tf.float32) / 255.0
        logits = self.model(pixels, training=training)
        outputs = {"accuracy": models.accuracy(logits, batch["labels"])}
        return models.cross_entropy(logits, batch["labels"]), outputs

    def on_start(self, run: Any) -> None:
        if run.step == 0:
            run.writer.images(0, {"input": self.first_images})

    def on_evaluation(self, run: Any, values: Any) -> None:
        weights = run.session.read({"first_layer": self.model.first_layer})
        run.writer.images(run.step, {"first_layer": as_images(weights["first_layer"])})


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # A folder `models` here is not the one.
    run(MNIST)
