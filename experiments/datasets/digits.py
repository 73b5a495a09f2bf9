"""Scikit-learn's handwritten digits: a real data set that needs no download."""

from __future__ import annotations

import hashlib

import numpy as np

from compat.deferral import deferred
from experiments.datasets.dataset import Dataset, Split

ENDS = (1297, 1497)  # of the training and of the validation split: 1,297, 200, and 300 for the test


def load() -> Dataset:
    """Returns the 1,797 digits of 8x8 pixels, enlarged to the 28x28 of MNIST.

    Each pixel becomes 3x3 pixels, inside a border of 2, and its 17 levels are spread over 0..255.
    The set is ordered by writer, so a fixed permutation, the same on all numpy releases, gives
    every split its share of every writer.
    """
    with deferred("pandas"):  # A sixth of the time, for nothing that is used here.
        from sklearn.datasets import load_digits  # lazily: takes a second

    bunch = load_digits()
    order = np.random.RandomState(0).permutation(len(bunch.target))
    levels = bunch.images[order].astype(np.int32)  # 0..16
    small = ((levels * 255 + 8) // 16).astype(np.uint8)  # rounded in integers: exact everywhere
    enlarged = small.repeat(3, axis=1).repeat(3, axis=2)
    images = np.pad(enlarged, ((0, 0), (2, 2), (2, 2)), mode="constant")
    labels = bunch.target[order].astype(np.int32)

    digest = hashlib.sha256(images.tobytes())
    digest.update(labels.astype(np.uint8).tobytes())  # one byte each: no byte order to mind

    splits = map(Split, np.split(images, ENDS), np.split(labels, ENDS))
    return Dataset("digits", "embedded in scikit-learn", digest.hexdigest(), *splits)
