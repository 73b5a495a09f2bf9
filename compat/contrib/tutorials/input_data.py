"""`tensorflow.examples.tutorials.mnist.input_data`, with the same split and example order."""

from __future__ import annotations

import gzip
import os
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np

from compat import datasets
from compat._tensorflow import tf1
from compat.contrib import era
from compat.datasets import idx
from compat.datasets.published import FILES, read_folder

SOURCE_URL = DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"

Datasets = namedtuple("Datasets", ["train", "validation", "test"])


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Returns float64 `[n, num_classes]` for labels `[n]`."""
    return np.eye(num_classes)[np.ravel(labels_dense)]


def extract_images(f: Any) -> np.ndarray:
    """Returns uint8 `[n, rows, columns, 1]` from an open gzip file of images."""
    print("Extracting", f.name)
    with gzip.GzipFile(fileobj=f) as stream:
        return idx.images(idx.IdxFile(f.name, stream.read()))[..., np.newaxis]


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> np.ndarray:
    """Returns uint8 `[n]`, or float64 `[n, num_classes]`, from an open gzip file of labels."""
    print("Extracting", f.name)
    with gzip.GzipFile(fileobj=f) as stream:
        labels = idx.labels(idx.IdxFile(f.name, stream.read())).astype(np.uint8)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


class DataSet:
    """Images and labels in shuffled batches.

    In TensorFlow before 1.1 the first epoch was in the order of the files, and an incomplete last
    batch was dropped. Since then the first epoch is shuffled, too, and a batch may span two epochs.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = None,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        dtype = tf1.as_dtype(dtype or tf1.float32).base_dtype
        if dtype not in (tf1.uint8, tf1.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self._as_before = era.of_script() == "0.x"
        if not self._as_before:
            # In TensorFlow 1.1 to 1.15 the seed of the graph also seeds NumPy.
            graph_seed, op_seed = tf1.get_seed(seed)
            np.random.seed(graph_seed if seed is None else op_seed)
        self._fake = fake_data
        self.one_hot = one_hot
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
            if reshape:
                images = images.reshape(len(images), int(np.prod(images.shape[1:])))
            if dtype == tf1.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._num_examples = 10000 if fake_data else len(images)
        self._images, self._labels = images, labels
        self._epochs_completed = self._index_in_epoch = 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: self._num_examples)
    epochs_completed = property(lambda self: self._epochs_completed)

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Any, Any]:
        """Returns the next images and labels."""
        if fake_data or self._fake:
            label = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label] * batch_size
        start = self._index_in_epoch
        if start == 0 and self._epochs_completed == 0 and shuffle and not self._as_before:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch += batch_size
            chosen = slice(start, self._index_in_epoch)
            return self._images[chosen], self._labels[chosen]
        if batch_size > self._num_examples:
            raise AssertionError(f"batch_size {batch_size} > {self._num_examples} examples")
        self._epochs_completed += 1
        rest = slice(self._num_examples if self._as_before else start, None)
        images, labels = self._images[rest], self._labels[rest]
        if shuffle:
            self._shuffle()
        self._index_in_epoch = batch_size - len(images)
        images = np.concatenate([images, self._images[: self._index_in_epoch]])
        return images, np.concatenate([labels, self._labels[: self._index_in_epoch]])

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = None,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = SOURCE_URL,
) -> Datasets:
    """Returns the training, validation and test sets; validation is split from training.

    Unless `train_dir` has the four files, the data of `--data_dir`, $MNIST_DATA_DIR or the cache
    are used. Only published data with known checksums are downloaded, so `source_url` is ignored.
    """
    options = {"dtype": dtype, "reshape": reshape, "seed": seed}
    if fake_data:
        return Datasets(*(DataSet([], [], fake_data=True, one_hot=one_hot) for _ in range(3)))
    arrays, _ = _arrays(train_dir)
    train_images, test_images = (a[..., np.newaxis] for a in arrays[::2])
    labels = [a.astype(np.uint8) for a in arrays[1::2]]
    train_labels, test_labels = [dense_to_one_hot(a, 10) for a in labels] if one_hot else labels
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(
            f"Validation size should be between 0 and {len(train_images)}. "
            f"Received: {validation_size}."
        )
    held_out, rest = slice(0, validation_size), slice(validation_size, None)
    return Datasets(
        train=DataSet(train_images[rest], train_labels[rest], **options),
        validation=DataSet(train_images[held_out], train_labels[held_out], **options),
        test=DataSet(test_images, test_labels, **options),
    )


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """Returns MNIST with integer labels."""
    return read_data_sets(train_dir)


def _arrays(train_dir: str) -> tuple[list[np.ndarray], str]:
    """Returns training images and labels, test images and labels, and their source."""
    files = read_folder(Path(train_dir))
    if len(files) == len(FILES):
        for name in FILES:
            print("Extracting", files[name].origin)
        readers = (idx.images, idx.labels, idx.images, idx.labels)
        arrays = [read(files[name]) for read, name in zip(readers, FILES)]
        return arrays, os.path.abspath(train_dir)
    data = datasets.load("mnist")
    print(f"{train_dir} does not hold MNIST; using {data.source}")
    parts = (data.validation, data.train)  # The first images are held out for validation.
    images = np.concatenate([part.images for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    return [images, labels, data.test.images, data.test.labels], data.source
