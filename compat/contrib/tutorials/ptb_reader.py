"""`tensorflow.models.rnn.ptb.reader`: reads the Penn Treebank of Mikolov's simple-examples.tgz."""

from __future__ import annotations

import collections
import os
from typing import Any, Iterator, Sequence

import numpy as np

from compat._tensorflow import tf1

_TOO_FEW = "epoch_size == 0, decrease batch_size or num_steps"


def _read_words(filename: str) -> list[str]:
    with tf1.gfile.GFile(filename, "r") as file:
        return str(file.read()).replace("\n", "<eos>").split()


def ptb_raw_data(data_path: str | None = None) -> tuple[list[int], list[int], list[int], int]:
    """Returns the word ids of `ptb.{train,valid,test}.txt` in a folder, and the vocabulary size."""
    parts = [
        _read_words(os.path.join(data_path or "", f"ptb.{part}.txt"))
        for part in ("train", "valid", "test")
    ]
    counts = collections.Counter(parts[0])
    words = sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: number for number, word in enumerate(words)}
    train, valid, test = ([ids[word] for word in part if word in ids] for part in parts)
    return train, valid, test, len(ids)


def ptb_iterator(
    raw_data: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields inputs and targets, int32 `[batch_size, num_steps]`, as in TensorFlow before 0.12."""
    words = np.array(raw_data, dtype=np.int32)
    length = len(words) // batch_size
    data = words[: batch_size * length].reshape(batch_size, length)
    epoch_size = (length - 1) // num_steps
    if epoch_size == 0:
        raise ValueError(_TOO_FEW)
    for start in range(0, epoch_size * num_steps, num_steps):
        yield data[:, start : start + num_steps], data[:, start + 1 : start + num_steps + 1]


def ptb_producer(
    raw_data: Sequence[int], batch_size: int, num_steps: int, name: str | None = None
) -> tuple[Any, Any]:
    """Returns inputs and targets, int32 `[batch_size, num_steps]`, from a queue."""
    with tf1.name_scope(name, "PTBProducer", [raw_data, batch_size, num_steps]):
        words = tf1.convert_to_tensor(raw_data, name="raw_data", dtype=tf1.int32)
        length = tf1.size(words) // batch_size
        data = tf1.reshape(words[0 : batch_size * length], [batch_size, length])
        epoch_size = (length - 1) // num_steps
        enough = tf1.assert_positive(epoch_size, message=_TOO_FEW)
        with tf1.control_dependencies([enough]):
            epoch_size = tf1.identity(epoch_size, name="epoch_size")
        start = tf1.train.range_input_producer(epoch_size, shuffle=False).dequeue() * num_steps
        x = tf1.slice(data, [0, start], [batch_size, num_steps])
        y = tf1.slice(data, [0, start + 1], [batch_size, num_steps])
        x.set_shape([batch_size, num_steps])
        y.set_shape([batch_size, num_steps])
        return x, y
