"""The four IDX files of a published data set: found, verified, and made a `Dataset`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Mapping

import numpy as np

from compat.datasets import idx
from compat.datasets.dataset import Dataset, Split
from compat.datasets.published import (
    FILES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Published,
)


def read(folder: Path) -> dict[str, idx.IdxFile]:
    """Returns those of the four files that a folder holds, by name; plain goes before gzip.

    Raises:
      BrokenFileError: a file is there and cannot be read.
    """
    files = {}
    for name in FILES:
        for path in (folder / name, folder / (name + ".gz")):
            if os.path.isfile(path):  # not `Path.is_file`, which raises for a forbidden folder
                files[name] = idx.read(path)
                break
    return files


def verify(published: Published, files: Mapping[str, idx.IdxFile]) -> dict[str, np.ndarray]:
    """Returns the arrays of the given files, by name, once they are known to be the published ones.

    What is wrong with the structure is told first, as it says more than that a checksum differs.

    Raises:
      BrokenFileError: a file is no IDX file, two disagree, or a checksum is not the published one.
    """
    arrays = {
        name: idx.images(file) if name in (TRAIN_IMAGES, TEST_IMAGES) else idx.labels(file)
        for name, file in files.items()
    }
    for images, labels in ((TRAIN_IMAGES, TRAIN_LABELS), (TEST_IMAGES, TEST_LABELS)):
        if images in arrays and labels in arrays and len(arrays[images]) != len(arrays[labels]):
            raise idx.BrokenFileError(
                files[labels].origin,
                f"has {len(arrays[labels]):,} labels, expected {len(arrays[images]):,}, "
                f"one for each image in {files[images].origin}",
            )
    for name, file in files.items():
        found = hashlib.sha256(file.contents).hexdigest()
        if found != published.sha256[name]:
            raise idx.BrokenFileError(
                file.origin,
                f"is not the published {published.title}: the SHA-256 of its uncompressed contents "
                f"is {found}, expected {published.sha256[name]}",
            )
    return arrays


def assemble(published: Published, files: Mapping[str, idx.IdxFile], source: str) -> Dataset:
    """Returns the data set that the four files hold.

    Args:
      published: what they should hold.
      files: all four, by name.
      source: where they were found.

    Raises:
      BrokenFileError: they are not the published data set.
    """
    arrays = verify(published, files)
    digest = hashlib.sha256()
    for name in FILES:
        digest.update(files[name].contents)
    images, labels = arrays[TRAIN_IMAGES], arrays[TRAIN_LABELS]
    held_out = published.num_validation
    return Dataset(
        name=published.name,
        source=source,
        checksum=digest.hexdigest(),
        train=Split(images[held_out:], labels[held_out:]),
        validation=Split(images[:held_out], labels[:held_out]),
        test=Split(arrays[TEST_IMAGES], arrays[TEST_LABELS]),
    )
