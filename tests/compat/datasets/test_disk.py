"""Data sets that are on the disk: every form, every place, and the same data in each."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import experiments
from compat import datasets
from compat.datasets.load import choose, obtain
from compat.datasets.published import FASHION_MNIST, FILES, MNIST
from compat.errors import UserError

if TYPE_CHECKING:
    from tests.compat.datasets.conftest import Sample

FORMS = ["gzip", "plain", "mixed", "npz"]


def assert_is(sample: Sample, dataset: datasets.Dataset) -> None:
    arrays = sample.arrays()
    held_out = sample.published.num_validation
    assert dataset.name == sample.published.name
    contents = b"".join(sample.contents[name] for name in FILES)
    assert dataset.checksum == hashlib.sha256(contents).hexdigest()
    for split, images, labels in (
        (dataset.train, arrays["x_train"][held_out:], arrays["y_train"][held_out:]),
        (dataset.validation, arrays["x_train"][:held_out], arrays["y_train"][:held_out]),
        (dataset.test, arrays["x_test"], arrays["y_test"]),
    ):
        assert split.images.dtype == np.uint8
        assert split.labels.dtype == np.int32
        assert np.array_equal(split.images, images)
        assert np.array_equal(split.labels, labels)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same_data(sample: Sample, tmp_path: Path, form: str) -> None:
    folder = sample.write(tmp_path / "data", form)
    dataset = obtain(sample.published, folder, say=print)
    assert_is(sample, dataset)
    assert dataset.source == str(folder / "mnist.npz" if form == "npz" else folder)


def test_a_file_that_a_browser_unpacked_keeps_its_name(made: Sample, tmp_path: Path) -> None:
    folder = made.write(tmp_path / "data")
    (folder / (FILES[0] + ".gz")).write_bytes(made.contents[FILES[0]])
    assert_is(made, obtain(made.published, folder, say=print))


def test_the_places_and_their_order(
    made: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"

    def source() -> str:
        return obtain(made.published, None, say=print).source

    made.write(home / ".keras" / "datasets", "npz")
    assert source() == str(home / ".keras" / "datasets" / "mnist.npz")
    made.write(tmp_path / "keras" / "datasets", "npz")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    assert source() == str(tmp_path / "keras" / "datasets" / "mnist.npz")
    cache = made.write(home / ".cache" / "compat-experiments" / "made")
    assert source() == str(cache)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert source() == str(cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    cache = made.write(tmp_path / "xdg" / "compat-experiments" / "made")
    assert source() == str(cache)
    monkeypatch.setenv("MNIST_DATA_DIR", str(made.write(tmp_path / "named", "npz")))
    assert source() == str(tmp_path / "named" / "mnist.npz")
    argument = made.write(tmp_path / "argument")
    dataset = obtain(made.published, argument, say=print)
    assert dataset.source == str(argument)


def test_auto_takes_what_is_there_and_says_so(sample: Sample, tmp_path: Path) -> None:
    folder = sample.write(tmp_path / "data")
    said: list[str] = []
    assert_is(sample, choose(sample.published, folder, say=said.append))
    assert said == [f"the data set is {sample.published.title}, from {folder}"]


def test_only_the_published_data_are_taken(sample: Sample, tmp_path: Path) -> None:
    folder = sample.write(tmp_path / "data")
    if dict(sample.published.sha256) == dict(MNIST.sha256):
        assert_is(sample, datasets.load("mnist", folder))
        name, published = "fashion_mnist", FASHION_MNIST
    else:
        name, published = "mnist", MNIST
    wrong = folder / (FILES[0] + ".gz")
    sentence = (
        f"^{wrong} is not the published {published.title}: the SHA-256 of its uncompressed "
        f"contents is {sample.published.sha256[FILES[0]]}, expected {published.sha256[FILES[0]]}; "
        "delete it to have it downloaded, or name another folder with --data_dir$"
    )
    with pytest.raises(UserError, match=sentence):
        datasets.load(name, folder)


def test_a_folder_that_is_a_file_is_refused(made: Sample, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    sentence = f"^data_dir {tmp_path / 'file'} is a file, expected the folder .* with --data_dir$"
    for load in (obtain, choose):
        with pytest.raises(UserError, match=sentence):
            load(made.published, tmp_path / "file", say=print)


@pytest.mark.parametrize("name", ["mnist", "auto"])
def test_a_broken_file_in_the_folder_of_the_environment_is_an_error(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / FILES[0]
    path.write_bytes(b"broken")
    code = f"""
from compat.errors import UserError
from compat import datasets
try:
    datasets.load({name!r})
except UserError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MNIST_DATA_DIR": str(tmp_path)},
        cwd=str(Path(experiments.__file__).resolve().parents[1]),
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    assert done.stdout.decode().startswith(f"{path} holds 6 bytes, expected a header of 16 bytes; ")
