"""An experiment of a user's own, on scikit-learn's breast cancer data; recall is the measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from compat import tf
from experiments import Experiment, Settings, run, setting, split
from experiments.evaluation.metrics import ConfusionMatrix, PrecisionRecallCurve, Recall


class Cancer(Experiment):
    monitor, mode = "validation/recall", "max"

    @dataclass(frozen=True)
    class Settings(Settings):
        hidden: int = setting(16, "Hidden units.", at_least=1)
        learning_rate: float = setting(0.01, "Learning rate.", above=0, group="training")
        batch_size: int = setting(32, "Examples in an update.", at_least=1, group="data")

    def data(self) -> Any:
        features, labels = load_breast_cancer(return_X_y=True)
        features = (features - features.mean(0)) / features.std(0)
        # 1 is malignant, what recall is about.
        return split({"features": features.astype(np.float32), "labels": 1 - labels}, 0.2, 0.2)

    def build(self) -> None:
        random = np.random.RandomState(self.settings.seed)
        first = random.standard_normal([30, self.settings.hidden]) / 6
        self.first = tf.Variable(first.astype(np.float32), name="first")
        self.second = tf.Variable(np.zeros(self.settings.hidden, np.float32), name="second")

    def loss(self, batch: Any, training: bool) -> Any:
        hidden = tf.tanh(batch["features"] @ self.first)
        logits = tf.reduce_sum(hidden * self.second, axis=1)
        labels = tf.cast(batch["labels"], tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses), {"labels": labels, "predictions": tf.sigmoid(logits)}

    def metrics(self) -> Any:
        pictures = {"confusion": ConfusionMatrix(), "pr_curve": PrecisionRecallCurve()}
        return {"recall": Recall(), **pictures}


if __name__ == "__main__":
    run(Cancer)
