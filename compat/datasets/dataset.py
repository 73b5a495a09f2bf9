"""The arrays of a data set, in three splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Split:
    """The examples of one split; the arrays are read-only, as several tasks may share them.

    Attributes:
      images: uint8 `[n, 28, 28]`, 0 (background) to 255.
      labels: int32 `[n]`, 0 to 9.
    """

    images: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        self.images.setflags(write=False)
        self.labels.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in its three splits, with its origin.

    Attributes:
      name: The name of the loaded data set, such as "mnist"; never "auto".
      source: The folder or the archive that holds it, or "embedded in scikit-learn".
      checksum: SHA-256 of the data, in hex; it does not depend on the format of the files.
      train: The split for training.
      validation: The split by which settings and checkpoints are chosen.
      test: The split for one evaluation at the end.
    """

    name: str
    source: str
    checksum: str
    train: Split
    validation: Split
    test: Split

    def splits(self) -> dict[str, dict[str, np.ndarray]]:
        """Returns a dict of arrays for each split, by its name, as an experiment's `data` does."""
        splits = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: dict(vars(split)) for name, split in splits.items()}
