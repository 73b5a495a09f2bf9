"""Prints what an update is made of: a product that bfloat16 rounds, and gradients of parts."""

from dataclasses import dataclass

import numpy as np

from compat import tf
from experiments import Callback, Experiment, Settings, run


class Printed(Callback):
    """Prints the values of the first update, and the weights at the end."""

    def __init__(self, weights, name):
        self.weights, self.name, self.seen = weights, name, False

    def on_start(self, run):
        print(self.name, "starts")

    def on_step(self, run, values):
        if not self.seen:
            print(self.name, "sees", {k: round(float(v), 4) for k, v in sorted(values.items())})
        self.seen = True

    def on_end(self, run, result):
        found = run.session.read({"weights": self.weights})["weights"]
        print(self.name, "ends with", np.round(found.ravel(), 5).tolist())


class Products(Experiment):
    """The mean of products with numbers just above 1, which bfloat16 takes for 1."""

    @dataclass(frozen=True)
    class Settings(Settings):
        """Settings of this experiment."""

        optimizer: str = "sgd"
        learning_rate: float = 0.5
        batch_size: int = 8
        max_steps: int = 4

    def data(self):
        x = np.full([32, 64], 1 + 2.0**-10, np.float32)
        return {"train": {"x": x, "y": np.arange(32, dtype=np.float32)}}

    def build(self):
        start = np.full([64, 4], 1 + 2.0**-10, np.float32)
        self.frozen = tf.Variable(start, trainable=False, name="frozen")
        self.weights = tf.Variable(np.zeros(1, np.float32), name="weights")

    def loss(self, batch, training):
        hidden = tf.nn.relu(batch["x"] @ self.frozen)
        product = tf.reduce_mean(tf.nn.relu(hidden @ tf.ones([4, 1])))
        loss = tf.reduce_mean((self.weights - batch["y"]) ** 2)
        return loss, {"product": product, "mean": tf.reduce_mean(batch["y"])}

    def callbacks(self):
        return [Printed(self.weights, "first"), Printed(self.weights, "second")]

    def on_start(self, run):
        print("experiment starts")


if __name__ == "__main__":
    run(Products)
