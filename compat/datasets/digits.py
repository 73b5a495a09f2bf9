"""Scikit-learn's handwritten digits: a real data set that needs no download."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from typing import Any

import numpy as np

from compat.datasets.dataset import Dataset, Split

# Ends of the training and the validation split: they have 1,297 and 200 examples, and the test
# split 300.
ENDS = (1297, 1497)
_FILE = "datasets/data/digits.csv.gz"  # The path in all releases of scikit-learn.


def load() -> Dataset:
    """Returns the 1,797 digits of 8x8 pixels, enlarged to the 28x28 of MNIST.

    Each pixel becomes 3x3 pixels, inside a border of 2, and its 17 levels are spread over 0..255.
    The set is ordered by writer, so a fixed permutation, the same on all numpy releases, gives
    every split its share of every writer.
    """
    originals, targets = _originals()
    order = np.random.RandomState(0).permutation(len(targets))
    levels = originals[order].astype(np.int32)  # 0..16
    # Rounded in integers, which is exact on all machines.
    small = ((levels * 255 + 8) // 16).astype(np.uint8)
    enlarged = small.repeat(3, axis=1).repeat(3, axis=2)
    images = np.pad(enlarged, ((0, 0), (2, 2), (2, 2)), mode="constant")
    labels = targets[order].astype(np.int32)

    digest = hashlib.sha256(images.tobytes())
    # One byte each, so the byte order does not matter.
    digest.update(labels.astype(np.uint8).tobytes())

    splits = map(Split, np.split(images, ENDS), np.split(labels, ENDS))
    return Dataset("digits", "embedded in scikit-learn", digest.hexdigest(), *splits)


def _originals() -> tuple[Any, Any]:
    """Returns the images [1797, 8, 8], whose levels are 0 to 16, and the labels [1797].

    They are read from the file in scikit-learn: importing the package takes seconds in every
    process of a cluster.
    """
    package = importlib.util.find_spec("sklearn")
    folder = os.path.dirname((package and package.origin) or "")
    path = os.path.join(folder, _FILE)
    if os.path.exists(path):
        table = np.loadtxt(path, delimiter=",")
        return table[:, :-1].reshape(-1, 8, 8), table[:, -1]
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.images, bunch.target
