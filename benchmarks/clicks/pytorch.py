"""Wide & deep on Criteo's format by hand in PyTorch, one process; see `benchmarks.clicks`.

All tables are one `EmbeddingBag(sparse=True)`, whose Adagrad is TensorFlow's. The files are parsed
before the clock starts, since PyTorch has no operation for that.
"""

from __future__ import annotations

import fileinput
from typing import Any

import numpy as np
import torch

from benchmarks.clicks import clock
from benchmarks.clicks.clock import CATEGORIES, NUMBERS


def arrays(here: Any, split: str) -> tuple[np.ndarray, ...]:
    """Returns labels `[n]`, numbers `[n, 13]` and rows of the table `[n, 26]`."""
    with fileinput.input(clock.files(here.data_dir, split)) as read:
        lines = [line.rstrip("\n").split("\t") for line in read]
    labels = np.array([line[0] for line in lines], np.float32)
    texts = np.array([line[1 : 1 + NUMBERS] for line in lines])
    numbers = np.log1p(np.maximum(np.where(texts == "", "0", texts).astype(np.float32), 0))
    values = np.array([[int(v or "0", 16) for v in line[1 + NUMBERS :]] for line in lines])
    hashed = (values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    rows = (hashed % np.uint64(here.buckets)).astype(np.int64)
    return labels, numbers, rows + np.arange(CATEGORIES) * here.buckets


class WideDeep(torch.nn.Module):
    """A weight for each value, and layers on embeddings, added."""

    def __init__(self, here: Any) -> None:
        super().__init__()
        total, limit = CATEGORIES * here.buckets, here.width**-0.5
        first = torch.empty(total, here.width).uniform_(-limit, limit)
        options = {"mode": "sum", "sparse": True}
        self.deep = torch.nn.EmbeddingBag.from_pretrained(first, freeze=False, **options)
        self.wide = torch.nn.EmbeddingBag.from_pretrained(
            torch.zeros(total, 1), freeze=False, **options
        )
        sizes = [CATEGORIES * here.width + NUMBERS, *map(int, here.hidden.split(",")), 1]
        layers: list[Any] = []
        for before, size in zip(sizes, sizes[1:]):
            layers += [dense(before, size), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers[:-1])
        self.numbers = dense(NUMBERS, 1)

    def forward(self, numbers: Any, rows: Any) -> Any:
        found = self.deep(rows.reshape(-1, 1)).reshape(len(rows), -1)
        deep = self.layers(torch.cat([found, numbers], dim=1))
        return (self.wide(rows) + deep + self.numbers(numbers)).squeeze(1)


def dense(before: int, size: int) -> Any:
    layer = torch.nn.Linear(before, size)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(clock.kernel(before, size).T))
        layer.bias.zero_()
    return layer


def main() -> None:
    here = clock.flags()
    train, test = ([*map(torch.from_numpy, arrays(here, split))] for split in ("train", "test"))
    model = WideDeep(here)
    tables = [model.deep.weight, model.wide.weight]
    others = [*model.layers.parameters(), *model.numbers.parameters()]
    options = {"lr": here.learning_rate, "initial_accumulator_value": 0.1}
    optimizers = [torch.optim.Adagrad(part, **options) for part in (tables, others)]
    measured, step = clock.Clock(), 0
    while step < here.max_steps:
        order = torch.randperm(len(train[0]))
        for batch in order.split(here.batch_size)[: here.max_steps - step]:
            labels, numbers, rows = (part[batch] for part in train)
            for optimizer in optimizers:
                optimizer.zero_grad()
            logits = model(numbers, rows)
            torch.nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()
            for optimizer in optimizers:
                optimizer.step()
            step += 1
            if step in (here.warm_up, here.max_steps):
                measured.read(step)
    with torch.no_grad():
        scores = model(test[1], test[2]).numpy()
    measured.print(clock.auc(test[0].numpy(), scores))


if __name__ == "__main__":
    main()
