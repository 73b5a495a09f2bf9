r"""Learns embeddings of words by skip-grams and sampled softmax (word2vec), as in TensorFlow 1.x.

    python -m experiments.classics.word2vec --strategy=ps --num_ps=2 --num_workers=2

The tables of embeddings and of softmax weights are cut into parts, which are dealt out to the
parameter servers. An update reads and changes only the rows of its words and of the sampled words.
The text is made up: a word stands for a pair of a country and a kind, such as (Norway, capital),
and the next word of the text usually has the same country or the same kind. So the right answer to
"the capital of Norway is to its currency as the capital of Peru is to ...?" is known, and so is the
best possible perplexity, which is logged at the start. Model: Mikolov et al., Efficient Estimation
of Word Representations in Vector Space, 2013; Jean et al., On Using Very Large Target Vocabulary,
2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compat import tf, tf1
from experiments import Data, Experiment, run, setting
from experiments.evaluation.metrics import Perplexity

EVALUATED = 20000  # Number of pairs for validation, and as many for the test.
STRAY = 0.1  # Probability that the next word of the text is any word, drawn evenly.
QUESTIONS = 1000


class Word2Vec(Experiment):
    """Predicts a nearby word from the embedding of a word."""

    monitor, mode = "validation/perplexity", "min"

    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
        """The settings of this experiment, in addition to those that every experiment has."""

        optimizer: str = setting("adagrad", "Optimizer.", choices=("adagrad", "adam", "sgd"))
        learning_rate: float = 1.0
        epochs: int = setting(3, "Passes over the text.", at_least=1, group="training")
        words: int = setting(200000, "Words of the training text.", at_least=1000, group="data")
        countries: int = setting(40, "Countries in the text.", at_least=3, group="data")
        kinds: int = setting(10, "Words for each country.", at_least=3, group="data")
        window: int = setting(2, "Words on each side that are predicted.", at_least=1, group="data")
        width: int = setting(32, "Numbers in an embedding.", at_least=1)
        sampled: int = setting(32, "Words that are sampled for an update.", at_least=1)
        parts: int = setting(2, "Parts of each table; at best as many as servers.", at_least=1)

    def data(self) -> Any:
        chances = near(self.settings)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.exp(-np.mean(np.nansum(chances * np.log(chances), axis=1)))
        print(f"the best possible predictions have a perplexity of {best:.2f}")
        random = np.random.RandomState([self.settings.seed, 1])
        counts = {"train": self.settings.words, "validation": EVALUATED, "test": EVALUATED}
        splits: Any = {s: pairs(self.settings, random, count) for s, count in counts.items()}
        return Data(**splits, name="a made-up text")

    def loss(self, batch: Any, training: bool) -> Any:
        settings = self.settings
        words, width = settings.countries * settings.kinds, settings.width
        parts = tf1.fixed_size_partitioner(settings.parts)
        uniform = tf1.random_uniform_initializer(-0.5 / width, 0.5 / width, settings.seed)
        zeros = tf1.zeros_initializer()
        with tf1.variable_scope("word2vec", partitioner=parts):
            table = tf1.get_variable("embeddings", [words, width], initializer=uniform)
            weights = tf1.get_variable("softmax/weights", [words, width], initializer=zeros)
            biases = tf1.get_variable("softmax/biases", [words], initializer=zeros)
        self.parts = list(table)
        found = tf1.nn.embedding_lookup(table, batch["words"], partition_strategy="div")
        if training:
            losses = tf1.nn.sampled_softmax_loss(
                weights,
                biases,
                labels=tf.expand_dims(batch["near"], 1),
                inputs=found,
                num_sampled=settings.sampled,
                num_classes=words,
                partition_strategy="div",
                seed=settings.seed,
            )
            return tf.reduce_mean(losses)
        logits = tf.matmul(found, tf.convert_to_tensor(weights), transpose_b=True) + biases
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["near"], logits=logits)
        return tf.reduce_mean(losses), {"losses": losses}

    def metrics(self) -> Any:
        return {"perplexity": Perplexity()}

    def on_evaluation(self, run: Any, values: Any) -> None:
        run.writer.scalars(run.step, {"validation/analogies": self._analogies(run)})

    def on_end(self, run: Any, result: Any) -> None:
        settings = self.settings
        words = [
            f"country {c}, kind {k}"
            for c in range(settings.countries)
            for k in range(settings.kinds)
        ]
        run.writer.embedding("words", self._table(run), words)
        print(f"Analogies: {self._analogies(run):.2f} of {QUESTIONS} right")

    def _table(self, run: Any) -> np.ndarray:
        parts = run.session.read({f"{i:04}": part for i, part in enumerate(self.parts)})
        return np.concatenate([parts[name] for name in sorted(parts)])

    def _analogies(self, run: Any) -> float:
        return analogies(self._table(run), self.settings.countries, self.settings.kinds)


def law(settings: Any) -> np.ndarray:
    """Returns the probability of each next word after each word, float64 `[words, words]`."""
    words = np.arange(settings.countries * settings.kinds)
    country, kind = words // settings.kinds, words % settings.kinds
    same_country = country[:, None] == country
    same_kind = kind[:, None] == kind
    related = same_country / (2.0 * settings.kinds) + same_kind / (2.0 * settings.countries)
    return np.asarray((1 - STRAY) * related + STRAY / len(words))


def near(settings: Any) -> np.ndarray:
    """Returns the probability of each nearby word for each word, float64 `[words, words]`."""
    step = law(settings)
    powers = [np.linalg.matrix_power(step, distance + 1) for distance in range(settings.window)]
    # `law` is symmetric, so these are the probabilities of words before a word, too.
    return np.asarray(np.mean(powers, axis=0))


def pairs(settings: Any, random: np.random.RandomState, count: int) -> dict[str, np.ndarray]:
    """Makes up a text; returns its `words` and a nearby word of each, `near`, int64 `[count]`."""
    kinds, countries, window = settings.kinds, settings.countries, settings.window
    text = np.empty(count + 2 * window, np.int64)
    how = random.random_sample(len(text))
    anywhere = random.randint(kinds * countries, size=len(text))
    word = anywhere[0]
    for i, (chance, other) in enumerate(zip(how.tolist(), anywhere.tolist())):
        if chance < (1 - STRAY) / 2:
            word = word // kinds * kinds + other % kinds
        elif chance < 1 - STRAY:
            word = other // kinds * kinds + word % kinds
        else:
            word = other
        text[i] = word
    centres = np.arange(window, count + window)
    distances = random.randint(1, window + 1, size=count) * random.choice([-1, 1], size=count)
    return {"words": text[centres], "near": text[centres + distances]}


def analogies(table: np.ndarray, countries: int, kinds: int) -> float:
    """Returns the share of questions "a is to b as c is to ...?" whose answer is the nearest word.

    Args:
      table: float32 `[countries * kinds, width]`, the embeddings.
      countries: the number of countries; each question has words of two of them.
      kinds: the number of kinds of words; each question has words of two of them.
    """
    random = np.random.RandomState(1)
    one, other = _two_of(random, countries)
    this, that = _two_of(random, kinds)
    a, b, c, answer = (
        country * kinds + kind
        for country, kind in ((one, this), (one, that), (other, this), (other, that))
    )
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    closeness = (unit[b] - unit[a] + unit[c]) @ unit.T
    rows = np.arange(QUESTIONS)
    for asked in (a, b, c):  # The words of the question do not count as answers.
        closeness[rows, asked] = -np.inf
    return float(np.mean(closeness.argmax(1) == answer))


def _two_of(random: np.random.RandomState, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns two different numbers below `number` for each question."""
    first = random.randint(number, size=QUESTIONS)
    return first, (first + random.randint(1, number, size=QUESTIONS)) % number


if __name__ == "__main__":
    run(Word2Vec)
