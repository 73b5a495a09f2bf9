"""The published data sets: what their files are called, hold, and where they are served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"
TEST_IMAGES = "t10k-images-idx3-ubyte"
TEST_LABELS = "t10k-labels-idx1-ubyte"
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)


@dataclass(frozen=True)
class Published:
    """A data set that somebody published as four IDX files.

    The checksums are over the *uncompressed* contents: MNIST is about in more than one gzip
    edition, plain, and as an npz, and all of them are the same data.

    Attributes:
      name: as in `--dataset`.
      title: as in messages.
      sha256: by file name, SHA-256 of the uncompressed contents, in hex.
      mirrors: URLs to which a file name and ".gz" are appended, tried in this order.
      num_validation: how many of the first training examples are the validation split.
      keras_archive: the file in which Keras caches the same data, if it does.
    """

    name: str
    title: str
    sha256: Mapping[str, str]
    mirrors: tuple[str, ...]
    num_validation: int = 5000
    keras_archive: str | None = None


MNIST = Published(
    name="mnist",
    title="MNIST",
    sha256={
        TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    keras_archive="mnist.npz",
)

FASHION_MNIST = Published(
    name="fashion_mnist",
    title="Fashion-MNIST",
    sha256={
        TRAIN_IMAGES: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        TRAIN_LABELS: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        TEST_IMAGES: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        TEST_LABELS: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    # What Keras takes, and the authors' own, whose published address has no https.
    mirrors=(
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
    ),
)
