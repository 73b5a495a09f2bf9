from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from compat import tf
from experiments import Experiment, Settings, run, setting, split
from experiments.evaluation.metrics import Accuracy


class Digits(Experiment):
    monitor, mode = "validation/accuracy", "max"

    @dataclass(frozen=True)
    class Settings(Settings):
        hidden: int = setting(16, "Hidden units.", at_least=1)
        epochs: int = 3

    def data(self):
        x, y = load_digits(return_X_y=True)
        return split({"x": x.astype("float32") / 16, "y": y.astype("int32")}, 0.2, 0.2)

    def build(self):
        self.w = tf.Variable(np.zeros([64, 10], "float32"), name="w")

    def loss(self, batch, training):
        logits = batch["x"] @ self.w
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["y"], logits=logits)
        return tf.reduce_mean(losses), {"labels": batch["y"], "predictions": logits}

    def metrics(self):
        return {"accuracy": Accuracy()}


if __name__ == "__main__":
    run(Digits)
