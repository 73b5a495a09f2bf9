"""Files of data: IDX, gzip, Keras's archive, and matrices."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.datasets import idx
from compat.datasets.published import FILES, MNIST, read_keras_archive
from compat.datasets.published import verify as verify_files
from compat.errors import UserError
from experiments.classics.calculations import matrix_powers
from tests.fuzz.conftest import attempt, mutated, times

pytestmark = pytest.mark.once

IMAGES = np.arange(3 * 784).astype(np.uint8).reshape(3, 28, 28)
LABELS = np.array([3, 1, 9], np.uint8)
IDX = (idx.encode(IMAGES), idx.encode(LABELS))
TOKENS = (b"\x00\x00\x08\x03", b"\xff" * 4, b"\0" * 4, b"\x1f\x8b\x08")


def archive(compression: int, **changes: bytes) -> bytes:
    """Returns an npz file of four small arrays, or of other bytes in the place of some."""
    arrays = {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES, "y_test": LABELS}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as npz:
        for name, array in arrays.items():
            npz.writestr(name + ".npy", changes.get(name, npy(array)))
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(text: bytes, version: bytes = b"\x01\x00") -> bytes:
    """Returns a .npy file with any header, of eight bytes of data."""
    size = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + text + b"\0" * 8


ARCHIVES = [archive(kind) for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)]
MATRIX = npy(np.eye(2))
HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
HEADERS = mutated(
    HEADER,
    tokens=(b"(", b"'", b"{", b"'''", b"[" * 200, b"1j", b"b''", b"True", b"-1", b"9" * 30, b"O"),
).map(header)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("datasets") / "file")


def verify(path: Path) -> Any:
    """Returns the arrays that were taken from a folder in which a file is broken."""
    file = attempt(idx.read, path)
    if isinstance(file, UserError):
        return file
    for read, kind in ((idx.images, np.uint8), (idx.labels, np.int32)):
        found = attempt(read, file)
        assert isinstance(found, UserError) or found.dtype == kind
    return attempt(verify_files, MNIST, dict.fromkeys(FILES, file))


@times(5)
@given(
    st.one_of(
        mutated(*IDX, tokens=TOKENS),
        mutated(*map(gzip.compress, IDX), tokens=TOKENS),
        mutated(*IDX, tokens=TOKENS).map(gzip.compress),
        st.binary(max_size=40),
    )
)
def test_idx(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    # None is MNIST, whatever else it is.
    assert isinstance(verify(path), UserError)


@times(4)
@given(st.one_of(mutated(*ARCHIVES, tokens=(b"PK\x03\x04", b"PK\x01\x02", *TOKENS)), HEADERS))
@example(archive(zipfile.ZIP_STORED, x_train=header(b"{'descr': ('")))
@example(archive(zipfile.ZIP_STORED, x_train=header(b"{" * 3000)))
def test_archives(path: Path, raw: bytes) -> None:
    for whole in (raw, archive(zipfile.ZIP_STORED, x_train=raw)):
        path.write_bytes(whole)
        found = attempt(read_keras_archive, path)
        if isinstance(found, dict):
            assert isinstance(attempt(verify_files, MNIST, found), UserError)


def test_archive_that_unpacks_to_a_giant(path: Path) -> None:
    """No more is unpacked than its directory claims."""
    small = npy(np.zeros(10_000, np.uint8))
    giant = small + b"\0" * (64 << 20)
    whole = archive(zipfile.ZIP_DEFLATED, y_test=giant)
    claim = [len(array).to_bytes(4, "little") for array in (giant, small)]
    path.write_bytes(whole.replace(*claim))
    tracemalloc.start()
    try:
        assert "Bad CRC-32" in str(attempt(read_keras_archive, path))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@times(5)
@given(st.one_of(HEADERS, mutated(MATRIX, *ARCHIVES[:2], header(HEADER, b"\x02\x00"))))
@example(header(b"{'descr': ('"))
@example(header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999, 9999999), }"))
@example(header(b"{[]: 1}"))
@example(header(b"{'descr': ('<f8',), 'fortran_order': False, 'shape': (2, 2), }"))
@example(ARCHIVES[0][:99])
def test_matrices(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    paths = {"matrix_a": str(path), "matrix_b": None}
    found = attempt(matrix_powers.load, paths, None, 0)
    assert isinstance(found, UserError) or found["A"].shape == found["B"].shape
    assert path.read_bytes() == raw
