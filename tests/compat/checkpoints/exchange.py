"""Trains a small network with Adam, each time until a step, from what its log folder holds.

Prints where each training begins and the cost before each update, and of each checkpoint to `read`
the type and the value of each variable, as one line of JSON. Without `trainings` it makes a golden
folder instead, named by the installed TensorFlow and the runtime: the checkpoint after 20 updates,
and the costs of 40 in one go. Those that are here were made so, by TensorFlow 1.15.5 and, on both
runtimes, by 2.21.0:

    PYTHONPATH=. python tests/compat/checkpoints/exchange.py '{"runtime": "legacy"}'
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import compat
import models
from compat import _tensorflow, tf, tf1
from compat.checkpoint import files
from models.mlp import normal

GOLDEN = Path(__file__).parent / "golden"
HALF, WHOLE = 20, 40
EXAMPLES, BATCH, FEATURES, UNITS, CLASSES = 60, 20, 8, 6, 4


class Network(tf.Module):
    """The network of `models.MLP`, of a size that a repository can hold."""

    def __init__(self) -> None:
        super().__init__(name="network")
        random = np.random.RandomState(1)
        self.hidden_kernel = tf.Variable(normal(random, [FEATURES, UNITS]), name="hidden/kernel")
        self.output_kernel = tf.Variable(normal(random, [UNITS, CLASSES]), name="output/kernel")
        self.hidden_bias = tf.Variable(np.zeros([UNITS], np.float32), name="hidden/bias")
        self.output_bias = tf.Variable(np.zeros([CLASSES], np.float32), name="output/bias")

    def __call__(self, features: Any) -> Any:
        hidden = tf.sigmoid(tf.matmul(features, self.hidden_kernel) + self.hidden_bias)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias


def train(runtime: str, until: int, logdir: str | None = None) -> dict[str, Any]:
    compat.select_runtime(runtime).clear()
    random = np.random.RandomState(0)
    features = random.standard_normal([EXAMPLES, FEATURES]).astype(np.float32)
    labels = random.randint(0, CLASSES, EXAMPLES).astype(np.int32)
    with compat.device(None):
        global_step = compat.get_or_create_global_step()
        network, optimizer = Network(), tf1.train.AdamOptimizer(0.01)

        def step(features: Any, labels: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                cost = models.cross_entropy(network(features), labels)
            weights = network.trainable_variables
            gradients = tape.gradient(cost, weights)
            update = optimizer.apply_gradients(zip(gradients, weights), global_step=global_step)
            return {"cost": cost, "update": update}

        signature = [tf.TensorSpec([None, FEATURES]), tf.TensorSpec([None], tf.int32)]
        update_once = compat.step(step, signature)
    supervisor = compat.Supervisor(logdir=logdir, save_summaries_secs=0)
    with supervisor.managed_session() as session:
        first, costs = session.planned_step, []
        while session.planned_step < until:
            batch = np.arange(BATCH) + BATCH * (session.planned_step % (EXAMPLES // BATCH))
            costs.append(session.run(update_once, features[batch], labels[batch])["cost"])
    return {"first": first, "costs": costs}


def read(prefix: str) -> dict[str, tuple[str, Any]]:
    """Returns by name the type and the value of each variable of a checkpoint."""
    values = files.read(prefix)
    return {name: (str(value.dtype), value.tolist()) for name, value in values.items()}


def make(runtime: str) -> None:
    """Makes the golden folder of the installed TensorFlow and `runtime`; refuses if it is there."""
    GOLDEN.mkdir(exist_ok=True)
    os.chdir(str(GOLDEN))  # The list of a folder names its checkpoints as the folder was named.
    folder = Path(f"tf{_tensorflow.version()}-{runtime}")
    folder.mkdir()
    train(runtime, HALF, str(folder))
    costs = train(runtime, WHOLE)["costs"]
    (folder / "costs.json").write_text(json.dumps(costs) + "\n", encoding="utf-8")


def main(settings: dict[str, Any]) -> None:
    if "trainings" not in settings:
        make(settings["runtime"])
        return
    trainings = [train(settings["runtime"], **training) for training in settings["trainings"]]
    print(json.dumps({"trainings": trainings, "read": [read(p) for p in settings["read"]]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
