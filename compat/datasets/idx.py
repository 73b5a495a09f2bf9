"""Reads a file in IDX, the format of http://yann.lecun.com/exdb/mnist, into a checked array."""

from __future__ import annotations

import gzip
import itertools
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compat.errors import UserError

IMAGE_SHAPE = (28, 28)
MAX_BYTES = 256 << 20  # Five times the size of MNIST. A larger file is broken, or an attack.
_CHUNK_BYTES = 1 << 20
# The upper bytes of the magic number; the last byte is the number of dimensions.
_UNSIGNED_BYTES = 0x0800


class BrokenFileError(UserError):
    """An invalid file; its `finding` is the message without the remedy."""

    def __init__(self, origin: str, finding: str) -> None:
        # The reason of a library may have several lines.
        self.finding = f"{origin} {' '.join(finding.split())}"
        super().__init__(
            f"{self.finding}; delete it to have it downloaded, "
            "or name another folder with --data_dir"
        )


@dataclass(frozen=True)
class IdxFile:
    """The uncompressed contents of an IDX file; messages use the name `origin` for it."""

    origin: str
    contents: bytes


def read(path: Path, origin: str | None = None) -> IdxFile:
    """Reads a file; unpacks it if it begins like gzip, since a browser may unpack a ".gz" file.

    Raises a `BrokenFileError` if it cannot be unpacked, or is larger than all supported data sets.
    """
    origin = origin or str(path)
    try:
        with path.open("rb") as file:
            is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
            stream = gzip.GzipFile(fileobj=file) if is_gzip else file
            # Read in chunks: a small gzip file may unpack to more than fits into memory.
            chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
            contents = b"".join(itertools.islice(chunks, MAX_BYTES // _CHUNK_BYTES + 1))
    except (EOFError, OSError, zlib.error) as error:
        raise BrokenFileError(
            origin, f"cannot be read ({error}), expected a whole gzip or plain IDX file"
        ) from error
    if len(contents) > MAX_BYTES:
        raise BrokenFileError(origin, f"holds more than {MAX_BYTES:,} bytes, expected fewer")
    return IdxFile(origin, contents)


def images(file: IdxFile) -> np.ndarray:
    """Returns the images of a file, uint8 `[n, 28, 28]`, a read-only view of its contents."""
    return _examples(file, "images", IMAGE_SHAPE)


def labels(file: IdxFile) -> np.ndarray:
    """Returns the labels of a file, int32 `[n]`, each 0 to 9."""
    values = _examples(file, "labels", ())
    wrong = np.flatnonzero(values > 9)
    if len(wrong):
        raise BrokenFileError(
            file.origin, f"has label {values[wrong[0]]} at position {wrong[0]}, expected 0 to 9"
        )
    return values.astype(np.int32)


def encode(array: np.ndarray) -> bytes:
    """Returns a uint8 array of any shape as the contents of an IDX file."""
    header = (_UNSIGNED_BYTES + array.ndim, *array.shape)
    return struct.pack(f">{len(header)}I", *header) + array.tobytes()


def _examples(file: IdxFile, what: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the bytes after the header, uint8 `[n, *shape]`; a view, so it allocates nothing."""

    def broken(finding: str) -> BrokenFileError:
        return BrokenFileError(file.origin, finding)

    header = struct.Struct(f">{2 + len(shape)}I")
    size = len(file.contents)
    if size < header.size:
        raise broken(f"holds {size} bytes, expected a header of {header.size} bytes")
    magic, count, *found_shape = header.unpack_from(file.contents)
    expected_magic = _UNSIGNED_BYTES + 1 + len(shape)
    if magic != expected_magic:
        raise broken(f"has magic number {magic}, expected {expected_magic} for {what}")
    if tuple(found_shape) != shape:
        raise broken(f"has {what} of {found_shape}, expected {list(shape)}")
    expected_size = header.size + count * int(np.prod(shape, dtype=np.int64))
    if size != expected_size:
        raise broken(
            f"holds {size:,} bytes, expected {expected_size:,} for the {count:,} {what} "
            "that its header claims"
        )
    return np.frombuffer(file.contents, np.uint8, offset=header.size).reshape(count, *shape)
