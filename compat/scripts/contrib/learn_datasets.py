"""`tf.contrib.learn.datasets`: CSV files, and small datasets from scikit-learn."""

from __future__ import annotations

import collections
import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from compat.datasets.download import TransferError, named_when_whole, transfer
from compat.errors import UserError

_MOST_SECS = 3600.0  # Timeout of a download.

Dataset = collections.namedtuple("Dataset", ["data", "target"])
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Reads a CSV file whose header starts with the number of examples and of features."""
    with open(filename, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    count, width = int(rows[0][0]), int(rows[0][1])
    target, data = _split(rows[1 : count + 1], target_column)
    return Dataset(
        np.asarray(data, dtype=features_dtype).reshape(-1, width),
        np.asarray(target, dtype=target_dtype),
    )


def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Reads a CSV file without a header."""
    with open(filename, newline="") as file:
        target, data = _split([row for row in csv.reader(file) if row], target_column)
    return Dataset(np.asarray(data, dtype=features_dtype), np.asarray(target, dtype=target_dtype))


def _split(rows: list[list[str]], column: int) -> tuple[list[str], list[list[str]]]:
    return [row.pop(column) for row in rows], rows


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
    """Returns the dataset "iris" or "mnist".

    Raises:
      UserError: another dataset, whose download location no longer exists.
    """
    del size, test_with_fake_data
    if name == "iris":
        return load_iris()
    if name == "mnist":
        return load_mnist()
    raise UserError(
        f"data set {name!r} of tf.contrib.learn is not served, only 'iris' and 'mnist' are; "
        "load it from a file with load_csv_with_header"
    )


def load_mnist(train_dir: str = "MNIST-data") -> Any:
    """Returns MNIST with integer labels."""
    from compat.scripts.tutorials import input_data

    return input_data.read_data_sets(train_dir)


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """Returns the path of a file, which is downloaded if it is missing.

    Accepts https only, also in redirects, unlike TensorFlow. The checksum of the file is unknown,
    so only its completeness is checked.

    Raises:
      UserError: the download failed.
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
