r"""Predicts clicks: categories by embeddings, numbers beside them, streamed by `tf.data`.

    python -m experiments.recommender --strategy=ps --num_ps=2 --num_workers=2

The clicks are made up by a known law, so that the AUC can be compared with the best possible one,
which is logged at the start. Only the rows of the table that a batch reads travel to and from the
parameter servers. Model: Cheng et al., Wide & Deep Learning for Recommender Systems, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from compat import tf, tf1
from experiments import Data, Experiment, run, setting
from experiments.evaluation.metrics import AUC, PrecisionRecallCurve

NUMBERS = 4  # Numerical features of an example.
EVALUATED = 4000  # Examples of validation, and of the test.


class Recommender(Experiment):
    """A wide part that adds a weight for each category, and a deep part on embeddings."""

    monitor, mode = "validation/auc", "max"

    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
        """What can be chosen for this experiment beside the settings of every one."""

        optimizer: str = setting("adagrad", "Optimizer.", choices=("adagrad", "adam", "sgd"))
        learning_rate: float = 0.1
        epochs: int = setting(4, "Passes over the training set.", at_least=1, group="training")
        examples: int = setting(40000, "Training examples.", at_least=1000, group="data")
        features: int = setting(8, "Categorical features.", at_least=1, group="data")
        categories: int = setting(100, "Categories of each feature.", at_least=2, group="data")
        width: int = setting(8, "Numbers in an embedding.", at_least=1)
        hidden: int = setting(32, "Hidden units.", at_least=1)

    def data(self) -> Any:
        counts = {"train": self.settings.examples, "validation": EVALUATED, "test": EVALUATED}
        made = {
            split: clicks(self.settings, seed, counts[split]) for seed, split in enumerate(counts)
        }
        best = AUC()
        best.update({"labels": made["test"]["clicked"], "predictions": made["test"].pop("law")})
        print(f"the law that made the clicks has a test AUC of {best.result():.4f}")

        streams: Any = {
            split: partial(self._batches, made[split], split == "train") for split in made
        }
        return Data(**streams, name="made-up clicks")

    def _batches(self, arrays: Any, training: bool, worker: int, workers: int) -> Any:
        # Sharded before it is a dataset: each worker holds its own part only.
        own = {name: array[worker::workers] for name, array in arrays.items() if name != "law"}
        dataset = tf.data.Dataset.from_tensor_slices(own)
        if training:
            dataset = dataset.shuffle(len(own["clicked"]), seed=self.settings.seed)
        return dataset.batch(self.settings.batch_size, drop_remainder=training).prefetch(2)

    def loss(self, batch: Any, training: bool) -> Any:
        del training
        settings = self.settings
        random = np.random.RandomState(settings.seed)

        def variable(name: str, *shape: int) -> Any:
            values = random.standard_normal(shape) / np.sqrt(shape[0])
            return tf1.get_variable(name, initializer=values.astype(np.float32))

        rows = settings.features * settings.categories
        table = variable("table", rows, settings.width + 1)
        # All features in one table: one gather, and one message to each parameter server.
        found = tf.gather(table, batch["categories"])
        wide = tf.reduce_sum(found[:, :, -1], axis=1)
        embeddings = tf.reshape(found[:, :, :-1], [-1, settings.features * settings.width])
        inputs = tf.concat([embeddings, batch["numbers"]], axis=1)
        kernel = variable("hidden/kernel", int(inputs.shape[1]), settings.hidden)
        hidden = tf.nn.relu(tf.matmul(inputs, kernel) + variable("hidden/bias", settings.hidden))
        logits = wide + tf.squeeze(tf.matmul(hidden, variable("output", settings.hidden, 1)), 1)
        labels = tf.cast(batch["clicked"], tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        outputs = {"labels": batch["clicked"], "predictions": tf.sigmoid(logits)}
        return tf.reduce_mean(losses), outputs

    def metrics(self) -> Any:
        return {"auc": AUC(), "pr_curve": PrecisionRecallCurve()}


def clicks(settings: Any, seed: int, count: int) -> dict[str, np.ndarray]:
    """Makes up examples, clicked at random by a law that is the same for every seed.

    These are `categories`, int64 `[count, features]`, as rows of one table; `numbers`, float32
    `[count, 4]`; `clicked`, int64 `[count]`, 0 or 1; and `law`, the probability of it.
    """
    law = np.random.RandomState(0)
    weights = law.standard_normal([settings.features, settings.categories])
    slopes = law.standard_normal(NUMBERS) / 2
    random = np.random.RandomState([seed, 1])
    chosen = random.randint(settings.categories, size=[count, settings.features])
    numbers = random.standard_normal([count, NUMBERS])
    logits = weights[np.arange(settings.features), chosen].sum(1) + numbers @ slopes
    law_says = 1 / (1 + np.exp(-logits))
    return {
        "categories": chosen + settings.categories * np.arange(settings.features),
        "numbers": numbers.astype(np.float32),
        "clicked": (random.random_sample(count) < law_says).astype(np.int64),
        "law": law_says,
    }


if __name__ == "__main__":
    run(Recommender)
