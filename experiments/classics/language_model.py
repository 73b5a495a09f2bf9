r"""Trains an LSTM to predict the next symbol of a text, in the style of TensorFlow 1.x.

    python -m experiments.classics.language_model --strategy=ps --num_ps=1 --num_workers=2

Variables come from `get_variable`, the LSTM cell is written out, and Keras is not used; the modern
runtime runs the same function. The text is made up by a Markov chain of order two, so that the
perplexity can be compared with the best possible one, which is logged at the start. The state of
the network is carried from each window of the text to the next, as in Zaremba et al., Recurrent
Neural Network Regularization, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import compat
from compat import tf, tf1
from experiments import Data, Experiment, run, setting
from experiments.evaluation.metrics import Perplexity

SYMBOLS = 12
EVALUATED = 20000  # Number of symbols for validation, and as many for the test.


class LanguageModel(Experiment):
    """One LSTM layer between an embedding of the symbols and a softmax."""

    monitor, mode = "validation/perplexity", "min"

    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
        """The settings of this experiment, in addition to those that every experiment has."""

        optimizer: str = setting("adam", "Optimizer.", choices=("adam", "sgd"))
        learning_rate: float = 0.01
        batch_size: int = setting(20, "Texts side by side.", at_least=1, group="data")
        epochs: int = setting(4, "Passes over the text.", at_least=1, group="training")
        symbols: int = setting(100000, "Symbols of training text.", at_least=10000, group="data")
        window: int = setting(20, "Symbols between two updates.", at_least=2, group="data")
        units: int = setting(32, "Units of the LSTM.", at_least=1)

    def data(self) -> Any:
        law = np.random.RandomState(0).dirichlet([0.2] * SYMBOLS, [SYMBOLS, SYMBOLS])
        counts = {"train": self.settings.symbols, "validation": EVALUATED, "test": EVALUATED}
        made = {split: text(law, seed, counts[split]) for seed, split in enumerate(counts)}
        known = made["test"]
        best = np.exp(-np.mean(np.log(law[known[:-2], known[1:-1], known[2:]])))
        print(f"the best possible predictions have a test perplexity of {best:.3f}")

        streams: Any = {split: partial(self._windows, symbols) for split, symbols in made.items()}
        return Data(**streams, name="a made-up text")

    def _windows(self, symbols: np.ndarray, worker: int, workers: int) -> Any:
        """Returns a dataset of windows `[batch_size, window]` of this worker's part of the text.

        The part is cut into `batch_size` rows, and each window has the next symbols of every row.
        """
        own = np.array_split(symbols, workers)[worker]
        rows, window = self.settings.batch_size, self.settings.window
        steps = (len(own) - 1) // rows // window
        length = steps * window

        def windows(array: np.ndarray) -> np.ndarray:
            side_by_side = array[: rows * length].reshape(rows, steps, window)
            return np.ascontiguousarray(side_by_side.swapaxes(0, 1))

        inputs, targets = windows(own[:-1]), windows(own[1:])
        first = np.arange(steps) == 0
        batches = {"inputs": inputs, "targets": targets, "first": first}
        return tf.data.Dataset.from_tensor_slices(batches)

    def loss(self, batch: Any, training: bool) -> Any:
        # This variable is on the worker, since every worker reads another part of the text.
        carried = compat.worker_variable(
            np.zeros([2, self.settings.batch_size, self.settings.units], np.float32),
            name="carried" if training else "carried_in_evaluation",
        )
        before = carried.read_value()
        state = tf.where(batch["first"], tf.zeros_like(before), before)
        logits, state = self._logits(batch["inputs"], state)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=batch["targets"], logits=logits
        )
        with tf.control_dependencies([carried.assign(state)]):
            return tf.reduce_mean(losses), {"losses": losses}

    def predict(self, batch: Any) -> Any:
        rows = tf.shape(batch["inputs"])[0]
        logits, _ = self._logits(batch["inputs"], tf.zeros([2, rows, self.settings.units]))
        # The probabilities of the symbol after the window.
        return {"probabilities": tf.nn.softmax(logits[:, -1])}

    def _logits(self, inputs: Any, state: Any) -> Any:
        """Returns the logits of the next symbol after each of `inputs`, and the last state."""
        units = self.settings.units
        with tf1.variable_scope("lstm", initializer=tf1.random_uniform_initializer(-0.1, 0.1, 1)):
            embedding = tf1.get_variable("embedding", [SYMBOLS, units])
            kernel = tf1.get_variable("kernel", [2 * units, 4 * units])
            bias = tf1.get_variable("bias", [4 * units], initializer=tf1.zeros_initializer())
            softmax = tf1.get_variable("softmax", [units, SYMBOLS])
        cell, output = tf.unstack(state)
        outputs = []
        for symbols in tf.unstack(tf.gather(embedding, inputs), axis=1):
            gates = tf.matmul(tf.concat([symbols, output], 1), kernel) + bias
            new, enter, forget, leave = tf.split(gates, 4, axis=1)
            cell = tf.sigmoid(forget + 1.0) * cell + tf.sigmoid(enter) * tf.tanh(new)
            output = tf.sigmoid(leave) * tf.tanh(cell)
            outputs.append(output)
        logits = tf.tensordot(tf.stack(outputs, axis=1), softmax, 1)
        return logits, tf.stack([cell, output])

    def metrics(self) -> Any:
        return {"perplexity": Perplexity("losses")}


def text(law: np.ndarray, seed: int, count: int) -> np.ndarray:
    """Draws symbols, int32 `[count]`, each of which depends on the two before it.

    `law[i, j, k]` is the probability that symbol k follows the symbols i and j.
    """
    cumulated = law.cumsum(axis=2)
    drawn = np.zeros(count, np.int32)
    for i, chance in enumerate(np.random.RandomState([seed, 2]).random_sample(count - 2), 2):
        row = cumulated[drawn[i - 2], drawn[i - 1]]
        drawn[i] = min(np.searchsorted(row, chance), SYMBOLS - 1)
    return drawn


if __name__ == "__main__":
    run(LanguageModel)
