"""The registry of published data sets: their files, checksums, mirrors, and copies on the disk."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from compat.datasets import idx
from compat.datasets.dataset import Dataset, Split

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"
TEST_IMAGES = "t10k-images-idx3-ubyte"
TEST_LABELS = "t10k-labels-idx1-ubyte"
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)


@dataclass(frozen=True)
class Published:
    """A data set that is published as four IDX files.

    The checksums are those of the *uncompressed* contents, since MNIST is distributed in several
    gzip editions, plain, and as an npz, all with the same data.
    """

    name: str
    title: str
    sha256: Mapping[str, str]
    mirrors: tuple[str, ...]  # URLs without the file name and ".gz", tried in this order.
    # The number of training examples, from the first on, in the validation split.
    num_validation: int = 5000
    keras_archive: str | None = None  # The file in which Keras caches the same data.


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
    # The mirror that Keras uses, and that of the authors, whose published address has no https.
    mirrors=(
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
    ),
)
# The names of classes that are not digits, by data set.
CLASSES: dict[str, Sequence[str]] = {
    FASHION_MNIST.name: (
        *("T-shirt", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
}


def read_folder(folder: Path) -> dict[str, idx.IdxFile]:
    """Returns the files of the dataset in a folder, by name; prefers plain files to gzip."""
    files = {}
    for name in FILES:
        for path in (folder / name, folder / (name + ".gz")):
            # Not `Path.is_file`, which raises an error for a forbidden folder.
            if os.path.isfile(path):
                files[name] = idx.read(path)
                break
    return files


def verify(published: Published, files: Mapping[str, idx.IdxFile]) -> dict[str, np.ndarray]:
    """Verifies the structure of files, then their checksums; returns their arrays by name."""
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
        checksum = hashlib.sha256(file.contents).hexdigest()
        if checksum != published.sha256[name]:
            raise idx.BrokenFileError(
                file.origin,
                f"is not the published {published.title}: the SHA-256 of its uncompressed contents "
                f"is {checksum}, expected {published.sha256[name]}",
            )
    return arrays


def assemble(published: Published, files: Mapping[str, idx.IdxFile], source: str) -> Dataset:
    """Returns the data set in the four verified files."""
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


def read_keras_archive(path: Path) -> dict[str, idx.IdxFile]:
    """Returns the arrays of Keras's archive as IDX files by name, which are not verified yet."""
    members = (
        (TRAIN_IMAGES, "x_train", idx.IMAGE_SHAPE),
        (TRAIN_LABELS, "y_train", ()),
        (TEST_IMAGES, "x_test", idx.IMAGE_SHAPE),
        (TEST_LABELS, "y_test", ()),
    )
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: idx.IdxFile(f"{path}: {member}", _member(archive, path, member, shape))
                for name, member, shape in members
            }
    except idx.BrokenFileError:
        raise
    except Exception as error:  # Broken files raise errors of many classes.
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise idx.BrokenFileError(
            str(path), f"cannot be read ({reason}), expected Keras's npz archive of the data set"
        ) from error


def _member(archive: zipfile.ZipFile, path: Path, member: str, shape: tuple[int, ...]) -> bytes:
    """Returns a member as the contents of an IDX file.

    `np.load(allow_pickle=False)` would allocate the size that a header claims before reading.
    """

    def broken(finding: str) -> idx.BrokenFileError:
        return idx.BrokenFileError(f"{path}: {member}", finding)

    info = archive.getinfo(member + ".npy")
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            found_shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            found_shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        if dtype.hasobject:
            raise broken("holds pickled Python objects, which are never loaded, expected uint8")
        if dtype != np.uint8 or is_fortran or not found_shape or found_shape[1:] != shape:
            raise broken(
                f"is {dtype} {list(found_shape)}{' in Fortran order' if is_fortran else ''}, "
                f"expected uint8 {['n', *shape]} in C order"
            )
        claimed = found_shape[0] * int(np.prod(shape, dtype=np.int64))
        held = info.file_size - stream.tell()
        if claimed != held or held > idx.MAX_BYTES:
            raise broken(f"holds {held:,} bytes, expected the {claimed:,} that its header claims")
        return idx.encode(np.frombuffer(stream.read(held), np.uint8).reshape(found_shape))
