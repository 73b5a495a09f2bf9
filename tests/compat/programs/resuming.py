"""Trains the network of 2016, each time until a step, from what its log folder holds.

Prints the cost before each update, by training.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import compat
from compat import tf
from experiments.mnist import MNIST
from experiments.training.updates import step

LEARNING_RATES = {"adam": 0.001, "momentum": 0.01}


def train(runtime: str, optimizer: str, logdir: str, until: int) -> list[float]:
    compat.select_runtime(runtime).clear()
    random = np.random.RandomState(0)
    images = random.randint(0, 256, [60, 28, 28]).astype(np.uint8)
    labels = random.randint(0, 10, 60).astype(np.int32)
    with compat.device(None):
        global_step = compat.get_or_create_global_step()
        rate = LEARNING_RATES[optimizer]
        settings = MNIST.Settings(optimizer=optimizer, learning_rate=rate, initial="normal")
        mnist = MNIST(settings)
        mnist.build()
        update = step.training_step(mnist, global_step)
        update_once = compat.step(
            lambda images, labels, indices: update(
                {"images": tf.gather(images, indices), "labels": tf.gather(labels, indices)}
            ),
            [tf.TensorSpec([None], tf.int32)],
            per_worker_data=[images, labels],
        )
    costs = []
    with compat.Supervisor(logdir=logdir).managed_session() as session:
        while session.planned_step < until:
            batch = np.arange(20) + 20 * (session.planned_step % 3)
            costs.append(session.run(update_once, batch.astype(np.int32))["loss"])
    return costs


def main(settings: dict[str, Any]) -> None:
    trainings = settings["trainings"]
    print(json.dumps([train(settings["runtime"], **training) for training in trainings]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
