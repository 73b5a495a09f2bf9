"""Keras's `mnist.npz`, read as the four IDX files whose data it holds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from compat.datasets import idx
from compat.datasets.published import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS

_MEMBERS = (
    (TRAIN_IMAGES, "x_train", idx.IMAGE_SHAPE),
    (TRAIN_LABELS, "y_train", ()),
    (TEST_IMAGES, "x_test", idx.IMAGE_SHAPE),
    (TEST_LABELS, "y_test", ()),
)


def read(path: Path) -> dict[str, idx.IdxFile]:
    """Returns the archive's arrays as IDX files, by name, so that they are verified as those are.

    Raises:
      BrokenFileError: it is no npz file, lacks an array, or holds one of another type or shape.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: idx.IdxFile(f"{path}: {member}", _contents(archive, path, member, shape))
                for name, member, shape in _MEMBERS
            }
    except idx.BrokenFileError:
        raise
    except Exception as error:  # What they raise of broken files is no closed set.
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise idx.BrokenFileError(
            str(path), f"cannot be read ({reason}), expected Keras's npz archive of the data set"
        ) from error


def _contents(archive: zipfile.ZipFile, path: Path, member: str, shape: tuple[int, ...]) -> bytes:
    """Returns a member as the contents of an IDX file.

    Not by `np.load(allow_pickle=False)`: that allocates what a header claims before it reads.
    """
    info = archive.getinfo(member + ".npy")
    origin = f"{path}: {member}"
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            found_shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            found_shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        if dtype.hasobject:
            raise idx.BrokenFileError(
                origin, "holds pickled Python objects, which are never loaded, expected uint8"
            )
        if (
            dtype != np.uint8
            or is_fortran
            or len(found_shape) != 1 + len(shape)
            or found_shape[1:] != shape
        ):
            raise idx.BrokenFileError(
                origin,
                f"is {dtype} {list(found_shape)}{' in Fortran order' if is_fortran else ''}, "
                f"expected uint8 {['n', *shape]} in C order",
            )
        claimed = found_shape[0] * int(np.prod(shape, dtype=np.int64))
        held = info.file_size - stream.tell()
        if claimed != held or held > idx.MAX_BYTES:
            raise idx.BrokenFileError(
                origin, f"holds {held:,} bytes, expected the {claimed:,} that its header claims"
            )
        return idx.encode(np.frombuffer(stream.read(held), np.uint8).reshape(found_shape))
