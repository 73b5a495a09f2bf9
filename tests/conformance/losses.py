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
from experiments.training import step

if TYPE_CHECKING:
    from tests.conformance import reference
else:
    import reference


def module(model: Any, optimizer: Any) -> Callable[..., Any]:
    """A network that is a `tf.Module`, updated by `experiments.training.step.train_step`."""
    return step.train_step(model, optimizer, compat.get_or_create_global_step(), remote=True)


def tf1_function(optimizer: Any) -> Callable[..., Any]:
    """The network that is a function of the TensorFlow 1.x kind, on the same batches."""

    def train(images: Any, labels: Any, indices: Any) -> Any:
        batch = step.pixels(tf.gather(images, indices))
        return models.model_fn(batch, tf.gather(labels, indices), optimizer)

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
}


def build(network: str, optimizer: str) -> compat.Step:
    """Makes variables and step, in a scope of their own."""
    with tf1.variable_scope(f"{network}_{optimizer}"):
        return compat.step(
            NETWORKS[network][0](step.optimizer(optimizer, reference.LEARNING_RATES[optimizer])),
            [tf.TensorSpec([None], tf.int32)],
            per_worker_data=list(reference.data()),
        )


def costs(session: compat.Session, train: compat.Step) -> list[float]:
    """Makes the updates one by one; returns the cost before each."""
    first, seen = session.planned_step, {}
    for number in range(reference.STEPS):
        batch = np.arange(number * reference.BATCH, (number + 1) * reference.BATCH)
        values = session.run(train, (batch % reference.EXAMPLES).astype(np.int32))
        seen[values["global_step"]] = values["cost"]
    seen.update((values["global_step"], values["cost"]) for values in session.drain())
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
