"""`tf.contrib.learn.datasets`: CSV files, and small datasets from scikit-learn."""

from __future__ import annotations

import collections
import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from compat.contrib.tutorials.input_data import load_mnist
from compat.datasets.download import TransferError, named_when_whole, transfer
from compat.errors import UserError

_MOST_SECS = 3600.0  # Timeout of a download.

Dataset = collections.namedtuple("Dataset", ["data", "target"])
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


def _rows(filename: str) -> list[list[str]]:
    with open(filename, newline="") as file:
        return [row for row in csv.reader(file) if row]


def _dataset(rows: list[list[str]], target_dtype: Any, dtype: Any, column: int) -> Dataset:
    target = np.asarray([row.pop(column) for row in rows], dtype=target_dtype)
    return Dataset(np.asarray(rows, dtype=dtype), target)


def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Reads a CSV file whose header starts with the number of examples and of features."""
    header, *rows = _rows(filename)
    count, width = int(header[0]), int(header[1])
    dataset = _dataset(rows[:count], target_dtype, features_dtype, target_column)
    return dataset._replace(data=dataset.data.reshape(-1, width))


def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Reads a CSV file without a header."""
    return _dataset(_rows(filename), target_dtype, features_dtype, target_column)


def load_csv(
    filename: str, target_dtype: Any, target_column: int = -1, has_header: bool = True
) -> Dataset:
    """Reads a CSV file with numeric features."""
    load = load_csv_with_header if has_header else load_csv_without_header
    return load(filename, target_dtype, np.float64, target_column)


def load_iris(data_path: str | None = None) -> Dataset:
    """Returns the iris dataset, from a file or from scikit-learn."""
    if data_path:
        return load_csv_with_header(data_path, int, float)
    from sklearn import datasets

    iris = datasets.load_iris()
    return Dataset(iris.data, iris.target)


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """Returns the dataset "iris" or "mnist"; the locations of the others no longer exist."""
    if name == "iris":
        return load_iris()
    if name == "mnist":
        return load_mnist()
    raise UserError(
        f"data set {name!r} of tf.contrib.learn is not served, only 'iris' and 'mnist' are; "
        "load it from a file with load_csv_with_header"
    )


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """Returns the path of a file, which is downloaded if it is missing.

    Accepts https only, unlike TensorFlow, also in redirects. The checksum of the file is unknown,
    so the download is only checked for completeness.
    """
    os.makedirs(work_directory, exist_ok=True)
    path = os.path.join(work_directory, filename)
    if os.path.exists(path):
        return path
    deadline = time.monotonic() + _MOST_SECS
    try:
        with named_when_whole(Path(path)) as partial, transfer(source_url, deadline) as answer:
            _, chunks = answer
            with partial.open("xb") as file:
                file.writelines(chunks)
    except TransferError as error:
        raise UserError(
            f"{filename} cannot be downloaded from {source_url} ({error}); "
            f"put it at {os.path.abspath(path)} by hand"
        ) from error
    print("Successfully downloaded", filename, os.path.getsize(path), "bytes.")
    return path


def shrink_csv(filename: str, ratio: int) -> None:
    """Writes every `ratio`-th line of a file to a new one, with "_small" in its name."""
    base, end = os.path.splitext(filename)
    with open(filename) as source, open(f"{base}_small{end}", "w") as target:
        target.writelines(line for number, line in enumerate(source) if number % ratio == 0)
