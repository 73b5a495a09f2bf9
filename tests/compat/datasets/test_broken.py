"""Files that do not hold what they should: one line that says what, never a traceback."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import numpy as np
import pytest

from compat.datasets.load import choose, obtain
from compat.datasets.published import FILES, TEST_IMAGES, TEST_LABELS
from compat.errors import UserError

if TYPE_CHECKING:
    from tests.compat.datasets.conftest import Sample

REMEDY = "; delete it to have it downloaded, or name another folder with --data_dir"

TEST_FILES = (TEST_IMAGES, TEST_LABELS)  # the smaller half, also of MNIST

Break = Callable[[bytes], bytes]
CASES: dict[str, tuple[str, Break, str]] = {
    "empty": (TEST_IMAGES, lambda b: b"", "holds 0 bytes, expected a header of 16 bytes"),
    "a cut header": (TEST_LABELS, lambda b: b[:5], "holds 5 bytes, expected a header of 8 bytes"),
    "labels for images": (
        TEST_IMAGES,
        lambda b: struct.pack(">I", 2049) + b[4:],
        "has magic number 2049, expected 2051 for images",
    ),
    "images for labels": (
        TEST_LABELS,
        lambda b: struct.pack(">I", 2051) + b[4:],
        "has magic number 2051, expected 2049 for labels",
    ),
    "a web page": (
        TEST_IMAGES,
        lambda b: b"<!DOCTYPE html><title>Log in</title>",
        "has magic number 1008813135, expected 2051 for images",
    ),
    "other images": (
        TEST_IMAGES,
        lambda b: struct.pack(">4I", 2051, 1, 14, 56) + b[-784:],
        r"has images of \[14, 56\], expected \[28, 28\]",
    ),
    "too short": (
        TEST_IMAGES,
        lambda b: b[:-1],
        r"holds [\d,]+ bytes, expected [\d,]+ for the [\d,]+ images that its header claims",
    ),
    "too long": (
        TEST_LABELS,
        lambda b: b + b"\0",
        r"holds [\d,]+ bytes, expected [\d,]+ for the [\d,]+ labels that its header claims",
    ),
    # 3.4 TB, if it were believed.
    "a giant's claim": (
        TEST_IMAGES,
        lambda b: b[:4] + b"\xff" * 4 + b[8:],
        "holds [\\d,]+ bytes, expected 3,367,254,359,296 for the 4,294,967,295 images that its "
        "header claims",
    ),
    "a wrong label": (
        TEST_LABELS,
        lambda b: b[:20] + b"\x0a" + b[21:],
        "has label 10 at position 12, expected 0 to 9",
    ),
    "fewer labels": (
        TEST_LABELS,
        lambda b: struct.pack(">2I", 2049, 7) + b[8:15],
        "has 7 labels, expected [\\d,]+, one for each image in .*/" + TEST_IMAGES + "(.gz)?",
    ),
    "a changed pixel": (
        TEST_IMAGES,
        lambda b: b[:-1] + b"\x01",
        r"is not the published \w+: the SHA-256 of its uncompressed contents is [0-9a-f]{64}, "
        "expected [0-9a-f]{64}",
    ),
}


def assert_refused(sample: Sample, folder: Path, sentence: str) -> None:
    """The same one line, whether the data set was asked for by name or not."""
    for load in (obtain, choose):
        with pytest.raises(UserError) as raised:
            load(sample.published, folder, say=print)
        assert re.match(f"^{sentence}{REMEDY}$", str(raised.value)), raised.value
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", sorted(CASES))
def test_a_broken_file(sample: Sample, tmp_path: Path, case: str, packed: bool) -> None:
    name, break_, finding = CASES[case]
    contents = break_(sample.contents[name])
    sample.write(tmp_path, "gzip" if packed else "plain", TEST_FILES)
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(contents, 1) if packed else contents)
    assert_refused(sample, tmp_path, f"{path} {finding}")


GZIP_CASES: dict[str, Break] = {
    "truncated": lambda b: b[: len(b) // 2],
    "cut in its header": lambda b: b[:7],
    "without its checksum": lambda b: b[:-8],
    "a flipped bit": lambda b: b[:2000] + bytes([b[2000] ^ 1]) + b[2001:],
    "another checksum": lambda b: b[:-8] + b"\0\0\0\0" + b[-4:],
    "another method": lambda b: b[:2] + b"\x01" + b[3:],
    "rubbish behind": lambda b: b + b"rubbish",
}


@pytest.mark.parametrize("case", sorted(GZIP_CASES))
def test_a_broken_gzip(sample: Sample, tmp_path: Path, case: str) -> None:
    path = sample.write(tmp_path, names=TEST_FILES) / (TEST_IMAGES + ".gz")
    path.write_bytes(GZIP_CASES[case](sample.gzipped[TEST_IMAGES]))
    assert_refused(
        sample, tmp_path, f"{path} cannot be read \\(.+\\), expected a whole gzip or plain IDX file"
    )


def test_a_small_gzip_that_unpacks_to_a_giant(made: Sample, tmp_path: Path) -> None:
    path = made.write(tmp_path) / (TEST_LABELS + ".gz")
    with gzip.open(path, "wb", 1) as stream:
        for _ in range(257):
            stream.write(bytes(1 << 20))
    assert_refused(made, tmp_path, f"{path} holds more than 268,435,456 bytes, expected fewer")


def test_what_is_there_is_looked_at_before_more_is_downloaded(made: Sample, tmp_path: Path) -> None:
    path = tmp_path / FILES[3]
    path.write_bytes(b"broken")
    assert_refused(made, tmp_path, f"{path} holds 6 bytes, expected a header of 8 bytes")


class Trap:
    """Fails the test if somebody unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("it was unpickled",))


def test_an_archive_with_pickles(made: Sample, tmp_path: Path) -> None:
    arrays = made.arrays()
    arrays["y_train"] = np.array([Trap()], dtype=object)
    np.savez(tmp_path / "mnist.npz", **arrays)
    assert_refused(
        made,
        tmp_path,
        f"{tmp_path / 'mnist.npz'}: y_train holds pickled Python objects, which are never loaded, "
        "expected uint8",
    )


def test_an_archive_that_is_a_pickle(made: Sample, tmp_path: Path) -> None:
    path = tmp_path / "mnist.npz"
    path.write_bytes(pickle.dumps(Trap()))
    assert_refused(
        made,
        tmp_path,
        f"{path} cannot be read \\(.+\\), expected Keras's npz archive of the data set",
    )


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"y_test": None}, r" cannot be read \(There is no item named 'y_test.npy' .*\), expected"),
        ({"x_test": np.zeros((3, 14, 14), np.uint8)}, r": x_test is uint8 \[3, 14, 14\], expected"),
        ({"x_train": np.zeros((3, 28, 28))}, r": x_train is float64 \[3, 28, 28\], expected uint8"),
        ({"y_test": np.uint8(7)}, r": y_test is uint8 \[\], expected uint8"),
        (
            {"y_train": np.array([3, 12], np.uint8)},
            ": y_train has label 12 at position 1, expected 0 to 9",
        ),
        (
            {"y_train": np.array([3, 1], np.uint8)},
            ": y_train has 2 labels, expected 600, one for each",
        ),
        (
            {"x_train": np.zeros((28, 28, 3), np.uint8).T},
            r": x_train is uint8 \[3, 28, 28\] in Fortran order, expected uint8 .* in C order",
        ),
    ],
)
def test_an_archive_of_something_else(
    made: Sample, tmp_path: Path, change: dict[str, Any], finding: str
) -> None:
    arrays = {k: v for k, v in {**made.arrays(), **change}.items() if v is not None}
    np.savez(tmp_path / "mnist.npz", **arrays)
    assert_refused(made, tmp_path, f"{tmp_path / 'mnist.npz'}{finding}.*")


def test_an_archive_with_other_data(made: Sample, tmp_path: Path) -> None:
    arrays = made.arrays()
    np.savez(tmp_path / "mnist.npz", **{**arrays, "x_test": arrays["x_test"][::-1].copy()})
    assert_refused(made, tmp_path, f"{tmp_path / 'mnist.npz'}: x_test is not the published Made.*")


def test_an_archive_whose_header_claims_a_giant(made: Sample, tmp_path: Path) -> None:
    path = tmp_path / "mnist.npz"
    header = io.BytesIO()
    claim = {"descr": "|u1", "fortran_order": False, "shape": (10**12, 28, 28)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", header.getvalue() + b"\0" * 784)
    assert_refused(
        made,
        tmp_path,
        f"{path}: x_train holds 784 bytes, expected the 784,000,000,000,000 that its header claims",
    )
