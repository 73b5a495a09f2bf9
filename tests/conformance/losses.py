"""The training of `reference`, by the project's own models and step, on the runtime asked for.

Alone, or as a task of a cluster. A trainer prints the cost before each update, by model and
optimizer, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

import compat
import models
from compat import tf, tf1
from experiments import Experiment
from experiments.training.updates import optimizers, step

if TYPE_CHECKING:
    from tests.conformance import reference
else:
    import reference


class Classifier(Experiment):
    """A network that is a `tf.Module`, updated as an experiment's is."""

    def __init__(self, model: Any, optimizer: str) -> None:
        super().__init__(Experiment.Settings(optimizer=optimizer))
        self._model = model

    def learning_rate(self, step: Any) -> Any:
        return reference.LEARNING_RATES[self.settings.optimizer]

    def loss(self, batch: Any, training: bool) -> Any:
        logits = self._model(pixels(batch["images"]), training=training)
        return models.cross_entropy(logits, batch["labels"])


def pixels(images: Any) -> Any:
    """Returns images uint8 `[batch, 28, 28]` as float32 `[batch, 784]`, in [0, 1]."""
    return tf.cast(tf.reshape(images, [-1, 28 * 28]), tf.float32) / 255.0


def module(model: Any, optimizer: str) -> Callable[..., Any]:
    """The step of a network that is a `tf.Module`."""
    global_step = compat.get_or_create_global_step()
    update = step.training_step(Classifier(model, optimizer), global_step, remote=True)

    def train(images: Any, labels: Any, indices: Any) -> Any:
        batch = {"images": tf.gather(images, indices), "labels": tf.gather(labels, indices)}
        return update(batch)

    return train


def tf1_function(optimizer: str) -> Callable[..., Any]:
    """The network that is a function of the TensorFlow 1.x kind, on the same batches."""

    made = optimizers.create(optimizer, reference.LEARNING_RATES[optimizer])

    def train(images: Any, labels: Any, indices: Any) -> Any:
        batch = pixels(tf.gather(images, indices))
        found = models.model_fn(batch, tf.gather(labels, indices), made)
        return {"loss": found.pop("cost"), **found}

    return train


class WithoutDropout:
    """A network as it is when nothing is left to chance, which differs between runtimes."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self.trainable_variables = network.trainable_variables

    def __call__(self, images: Any, training: bool) -> Any:
        del training
        return self._network(images, training=False)


# A row for each network: how its step is made of an optimizer, and with which it is trained.
NETWORKS: dict[str, Any] = {
    "mlp": (lambda optimizer: module(models.MLP(), optimizer), ("sgd", "momentum", "adam")),
    "mlp_tf1": (tf1_function, ("sgd", "momentum", "adam")),
    "cnn": (lambda optimizer: module(WithoutDropout(models.CNN()), optimizer), ("sgd",)),
    "resnet": (lambda optimizer: module(models.ResNet(), optimizer), ("adam",)),
}


def build(network: str, optimizer: str) -> compat.Step:
    """Makes variables and step, in a scope of their own."""
    with tf1.variable_scope(f"{network}_{optimizer}"):
        return compat.step(
            NETWORKS[network][0](optimizer),
            [tf.TensorSpec([None], tf.int32)],
            per_worker_data=list(reference.data()),
        )


def costs(session: compat.Session, train: compat.Step) -> list[float]:
    """Makes the updates one by one; returns the cost before each."""
    first, seen = session.planned_step, {}
    for number in range(reference.STEPS):
        batch = np.arange(number * reference.BATCH, (number + 1) * reference.BATCH)
        values = session.run(train, (batch % reference.EXAMPLES).astype(np.int32))
        seen[values["global_step"]] = values["loss"]
    seen.update((values["global_step"], values["loss"]) for values in session.drain())
    return [cost for number, cost in sorted(seen.items()) if number > first]


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    setter, target = None, ""
    if "cluster" in settings:
        server = compat.Server(settings["cluster"], settings["job"], settings["index"])
        if server.serves:
            server.join()
            return
        setter, target = compat.replica_device_setter(cluster=server.cluster), server.target
    with compat.device(setter):
        compat.get_or_create_global_step()
        steps = {
            network: {optimizer: build(network, optimizer) for optimizer in optimizers}
            for network, (_, optimizers) in NETWORKS.items()
        }
    with compat.Supervisor(logdir=None).managed_session(target) as session:
        found = {
            network: {optimizer: costs(session, train) for optimizer, train in trained.items()}
            for network, trained in steps.items()
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
