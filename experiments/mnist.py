r"""Trains a network on MNIST: in one process, with parameter servers, or on workers in step.

A whole cluster on this machine, one task of a cluster on several, and an evaluator beside a run:

    python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2
    python -m experiments.mnist --strategy=ps --job_name=worker --task_index=0 \
        --ps_hosts=pc-01:2222 --worker_hosts=pc-02:2222,pc-03:2222 --allow_network
    python -m experiments.mnist --job_name=evaluator --logdir=runs/1
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat import datasets, tf
from experiments import Data, Experiment, run, setting
from experiments.evaluation.metrics import (
    ConfusionMatrix,
    Embedding,
    Misclassified,
    PrecisionRecallCurve,
)
from experiments.training.recording.images import as_images

CLOTHES = ["T-shirt", "trouser", "pullover", "dress", "coat"]
CLOTHES += ["sandal", "shirt", "sneaker", "bag", "ankle boot"]


class MNIST(Experiment):
    """Handwritten digits, or pieces of clothing, in 28 x 28 grey pixels."""

    monitor, mode, loss_name = "validation/accuracy", "max", "cost"  # "cost", as in 2016.
    presets = {
        "2016": {"optimizer": "sgd", "learning_rate": 0.001, "epochs": 20, "initial": "normal"}
    }

    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
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
        model: str = setting("mlp", "Network.", choices=("mlp", "cnn", "resnet"))
        initial: str = setting(
            "scaled", "Initial weights of mlp: N(0, 1), or scaled.", choices=("scaled", "normal")
        )
        learning_rate: float = 0.003
        epochs: int = 5

    @classmethod
    def shared_flags(cls, settings: Any) -> list[str]:
        """Lets one process find out what `auto` is, so that all tasks train on the same data."""
        auto = settings.dataset == "auto"
        return [f"--dataset={datasets.load('auto', settings.data_dir).name}"] if auto else []

    def data(self) -> Any:
        found = datasets.load(self.settings.dataset, self.settings.data_dir)
        self.first_images = found.train.images[:16, ..., None]
        return Data(**found.splits(), name=found.name, source=found.source, checksum=found.checksum)

    def build(self) -> None:
        import models  # Not at the top: its classes need TensorFlow, and --help does not.

        seed, name = self.settings.seed, self.settings.model
        if name == "mlp":
            self.model: Any = models.MLP(seed, self.settings.initial)
        else:
            self.model = {"cnn": models.CNN, "resnet": models.ResNet}[name](seed)

    def loss(self, batch: Any, training: bool) -> Any:
        import models

        logits = self._logits(batch["images"], training)
        outputs = {**batch, "predictions": logits}  # For the metrics.
        outputs["accuracy"] = models.accuracy(logits, batch["labels"])
        return models.cross_entropy(logits, batch["labels"]), outputs

    def metrics(self) -> Any:
        classes = CLOTHES if self.settings.dataset == "fashion_mnist" else None
        return {
            "confusion": ConfusionMatrix(classes=classes),
            "misclassified": Misclassified(classes=classes),
            "pr_curve": PrecisionRecallCurve(classes=classes, from_logits=True),
            "logits": Embedding(images="images", classes=classes),
        }

    def predict(self, batch: Any) -> Any:
        logits = self._logits(batch["images"], training=False)
        return {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}

    def _logits(self, images: Any, training: bool) -> Any:
        pixels = tf.cast(tf.reshape(images, [-1, 28 * 28]), tf.float32) / 255.0
        return self.model(pixels, training=training)

    def on_start(self, run: Any) -> None:
        if run.step == 0:
            run.writer.images(0, {"input": self.first_images})

    def on_evaluation(self, run: Any, values: Any) -> None:
        weights = run.session.read({"first_layer": self.model.first_layer})
        run.writer.images(run.step, {"first_layer": as_images(weights["first_layer"])})


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # A folder `models` here is not the one.
    run(MNIST)
