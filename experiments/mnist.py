r"""Trains a network on MNIST: in one process, with parameter servers, or on synchronous workers.

A whole cluster on this machine, or one task of a cluster on several:

    python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2
    python -m experiments.mnist --strategy=ps --job_name=worker --task_index=0 \
        --ps_hosts=pc-01:2222 --worker_hosts=pc-02:2222,pc-03:2222 --allow_network
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compat import datasets, tf
from experiments import Data, Experiment, run, setting
from experiments.evaluation.metrics import classifier_pictures
from experiments.training.recording.images import as_images


class MNIST(Experiment):
    """Handwritten digits, or pieces of clothing, in 28 x 28 grey pixels."""

    monitor, mode, loss_name = "validation/accuracy", "max", "cost"  # "cost", as in 2016.
    presets = {
        "2016": {"optimizer": "sgd", "learning_rate": 0.001, "epochs": 20, "initial": "normal"}
    }

    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
        """The settings of this experiment, in addition to those that every experiment has."""

        dataset: str = setting(
            "auto", "Images; auto: MNIST, or digits offline.", choices=datasets.NAMES, group="data"
        )
        data_dir: str | None = setting(
            None, "Folder of the data; default $MNIST_DATA_DIR, else a cache.", group="data"
        )
        model: str = setting("mlp", "Network.", choices=("mlp", "cnn", "resnet"))
        initial: str = setting("scaled", "Initial weights of mlp.", choices=("scaled", "normal"))
        learning_rate: float = 0.003
        epochs: int = 5

    @classmethod
    def shared_flags(cls, settings: Any) -> list[str]:
        """Returns the --dataset that "auto" stands for, so that all tasks use the same data set."""
        auto = settings.dataset == "auto"
        return [f"--dataset={datasets.load('auto', settings.data_dir).name}"] if auto else []

    def data(self) -> Any:
        found = datasets.load(self.settings.dataset, self.settings.data_dir)
        self.first_images = found.train.images[:16, ..., None]
        return Data(**found.splits(), name=found.name, source=found.source, checksum=found.checksum)

    def build(self) -> None:
        import models  # Not at the top: its classes need TensorFlow, and --help does not.

        chosen = self.settings
        self.model = models.image_classifier(chosen.model, chosen.seed, chosen.initial)

    def loss(self, batch: Any, training: bool) -> Any:
        import models

        logits, labels = self._logits(batch["images"], training), batch["labels"]
        outputs = {**batch, "predictions": logits, "accuracy": models.accuracy(logits, labels)}
        return models.cross_entropy(logits, labels), outputs

    def metrics(self) -> Any:
        return classifier_pictures(datasets.CLASSES.get(self.settings.dataset))

    def predict(self, batch: Any) -> Any:
        logits = self._logits(batch["images"], training=False)
        return {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}

    def _logits(self, images: Any, training: bool) -> Any:
        return self.model(tf.cast(tf.reshape(images, [-1, 784]), tf.float32) / 255.0, training)

    def on_start(self, run: Any) -> None:
        if run.step == 0:
            run.writer.images(0, {"train/input": self.first_images})

    def on_evaluation(self, run: Any, values: Any) -> None:
        weights = run.session.read({"first_layer": self.model.first_layer})
        images = as_images(weights["first_layer"])
        run.writer.images(run.step, {"weights/first_layer": images})


if __name__ == "__main__":
    run(MNIST)
