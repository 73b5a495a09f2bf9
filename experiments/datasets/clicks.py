"""Makes up clicks from known probabilities, to compare a model with the best possible one.

    law = clicks.Law(seed=0, values=1000)
    found = law.make(seed=1, count=10000)
    law.write(folder, {"train-0": 50000, "train-1": 50000, "test": 10000})   # Criteo's format

A `Law` is a distribution of clicks.
"""

from __future__ import annotations

import os
from typing import Mapping, NamedTuple

import numpy as np

from experiments.datasets.criteo import CATEGORIES, NUMBERS

_RANK = 4  # Length of the vectors whose dot product is the effect of a pair of values.
_MISSING = 0.1  # Share of the numbers that are missing.


class Clicks(NamedTuple):
    """Made-up examples."""

    labels: np.ndarray  # int64 `[count]`, 1 for a click.
    numbers: np.ndarray  # float32 `[count, 13]`, whole and at least 0; NaN where missing.
    values: np.ndarray  # int64 `[count, 26]`, in [0, 2^31); files have them as hexadecimal texts.
    chances: np.ndarray  # float64 `[count]`, the true probability of a click.

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the `labels`, `numbers` and `categories` of the examples, as `criteo.parse` does.

        The categories are the values themselves, not hashes of them.
        """
        numbers = np.log1p(np.nan_to_num(self.numbers))
        return {"labels": self.labels, "numbers": numbers, "categories": self.values}


class Law:
    """A known distribution of clicks: the probability is the sigmoid of a sum.

    Each category value adds its weight, each number log(1 + number) times a weight, and each pair
    of category values the dot product of their vectors. The categories have from 4 to `values`
    values, geometrically spaced; few values are frequent, as in real clicks.

    Args:
      seed: seed of the weights and vectors; equal seeds make the same law.
      values: number of values of the largest category.
    """

    def __init__(self, seed: int = 0, values: int = 1000) -> None:
        random = np.random.RandomState(seed)
        self.sizes = np.geomspace(4, max(4, values), CATEGORIES).astype(int)
        self._offsets = np.cumsum(self.sizes) - self.sizes
        total = int(self.sizes.sum())
        self._weights = random.standard_normal(total) * 0.4
        self._vectors = random.standard_normal([total, _RANK]) * 0.12
        self._slopes = random.standard_normal(NUMBERS) * 0.2
        self._values = random.randint(0, 2**31 - 1, total).astype(np.int64)

    def make(self, seed: int, count: int) -> Clicks:
        """Returns `count` made-up examples; equal seeds make the same examples."""
        random = np.random.RandomState([seed, 1])
        # The n values of a category are 0 to n - 1; v + 1 is log-uniform, so small v are frequent.
        chosen = (self.sizes ** random.random_sample([count, CATEGORIES]) - 1).astype(int)
        rows = self._offsets + chosen
        numbers = np.floor(np.exp(random.standard_normal([count, NUMBERS]) * 1.5 + 1))
        vectors = self._vectors[rows]
        # The dot products of all pairs of vectors: the squared sum has each of them twice, and the
        # squares.
        pairs = (vectors.sum(axis=1) ** 2 - (vectors**2).sum(axis=1)).sum(axis=1) / 2
        logits = self._weights[rows].sum(axis=1) + pairs - 1
        missing = random.random_sample(numbers.shape) < _MISSING
        logits += (np.log1p(np.where(missing, 0, numbers)) - 1.3) @ self._slopes
        chances = 1 / (1 + np.exp(-logits))
        labels = (random.random_sample(count) < chances).astype(np.int64)
        shown = np.where(missing, np.nan, numbers).astype(np.float32)
        return Clicks(labels, shown, self._values[rows], chances)

    def write(self, folder: str, counts: Mapping[str, int]) -> None:
        """Writes files in Criteo's format: for each name in `counts`, one with that many examples.

        A file has its name only once it is complete. The files are made with the seeds 0, 1, ...
        """
        os.makedirs(folder, exist_ok=True)
        for seed, (name, count) in enumerate(counts.items()):
            made = self.make(seed, count)
            part = os.path.join(folder, f".{name}.{os.getpid()}")
            with open(part, "w", encoding="ascii") as file:
                for label, numbers, values in zip(made.labels, made.numbers, made.values):
                    shown = ["" if np.isnan(number) else f"{number:.0f}" for number in numbers]
                    texts = [f"{value:08x}" for value in values]
                    file.write("\t".join([str(label), *shown, *texts]) + "\n")
            os.replace(part, os.path.join(folder, name))
