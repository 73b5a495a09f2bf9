"""Digits, by layers of Keras: what the functions do beside their values is seen in variables."""

import json
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from compat import tf
from experiments import Experiment, Settings, run, setting, split
from experiments.evaluation.metrics import Accuracy


class Effects(Experiment):
    """Counts how often each function has run, and keeps moving averages."""

    monitor, mode = "validation/accuracy", "max"

    @dataclass(frozen=True)
    class Settings(Settings):
        """Settings of this experiment."""

        watched: str = setting("validation/accuracy", "What the best checkpoint goes by.")
        labels: int = setting(10, "How many labels are thought to be possible.", at_least=1)
        learning_rate: float = 0.05
        epochs: int = 16
        batch_size: int = 100

    def data(self):
        x, y = load_digits(return_X_y=True)
        return split({"x": x.astype("float32") / 16 + 9, "y": y.astype("int32")}, 0.2, 0.2)

    def build(self):
        self.monitor = self.settings.watched
        layers = tf.keras.layers
        normal = layers.BatchNormalization(momentum=0.9, name="normal")
        dense = layers.Dense(10, name="dense")
        self.model = tf.keras.Sequential([layers.Input([64]), normal, dense])
        names = ("in_loss", "in_gradients", "after_update", "mean")
        first = np.float32(0)
        self.seen = {name: tf.Variable(first, trainable=False, name=name) for name in names}

    def loss(self, batch, training):
        tf.debugging.assert_less(batch["y"], self.settings.labels, message="a label too large")
        seen, labels = self.seen, batch["y"]
        logits = self.model(batch["x"], training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        outputs = {"labels": labels, "predictions": logits}
        if training:
            before = tf.identity(seen["in_loss"])
            seen["in_loss"].assign_add(1.0)
            outputs["counted"] = seen["in_loss"] - before
            seen["mean"].assign(0.9 * seen["mean"] + 0.1 * 100.0)
            tf.cond(before < 1.0, lambda: tf.print("the first loss is", loss), tf.no_op)
        return loss, outputs

    def gradients(self, pairs):
        self.seen["in_gradients"].assign_add(1.0)
        return super().gradients(pairs)

    def after_update(self, step, optimizer):
        self.seen["after_update"].assign_add(1.0)

    def metrics(self):
        return {"accuracy": Accuracy()}

    def on_step(self, run, values):
        assert values["counted"] >= 1.0, values

    def on_end(self, run, result):
        averages = {v.name: v for v in tf_variables(self.model) if "moving_mean" in v.name}
        (average,) = averages.values()
        found = run.session.read({**self.seen, "average": average})
        found = {name: float(np.mean(value)) for name, value in found.items()}
        print(json.dumps({**found, "step": result.step}))


def tf_variables(model):
    """Returns TensorFlow's variables: those of Keras 3 have them as their values."""
    return [getattr(variable, "value", variable) for variable in model.variables]


if __name__ == "__main__":
    run(Effects)
