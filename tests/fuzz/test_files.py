"""Files that commands are given: rows to predict from, settings, weights of Keras, old records."""

from __future__ import annotations

import importlib.util
import io
import json
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from hypothesis import example, given

from compat.checkpoint.formats import keras_weights
from experiments.export import rows
from experiments.launching import task_record
from experiments.mnist import MNIST
from experiments.settings.files import read_settings
from experiments.training.recording import origin
from tests.fuzz.conftest import attempt, mutated, times

pytestmark = pytest.mark.once

X = np.arange(12, dtype="f4").reshape(4, 3)
WANTED = {"x": rows.Row("float32", (3,))}
IMAGE = {"image": rows.Row("uint8", (4, 4))}


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


def npz(save: Callable[..., None]) -> bytes:
    file = io.BytesIO()
    save(file, x=X, other=X)
    return file.getvalue()


def png() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4)).save(file, "PNG")
    return file.getvalue()


CSV = b"x.0,x.1,x.2\n1,2,3\n4,,6\n"
LINES = b'{"x": [1, 2, 3]}\n[4, 5, 6]\n{"x": ["NaN", 1e999, null]}\n'
SETTINGS = (
    b"# settings\nlearning_rate: 0.1\nbatch_size: 100\nlogdir: /logs\nsync: true\nseed: null\n"
)
TOKENS = (
    b"\0",
    b"\xff",
    b"[" * 999,
    b"{",
    b"1e999",
    b"9" * 400,
    b"&a [*a]",
    b"!!python/name:os.system ",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("files"))


def read_rows(path: Path, wanted: Any) -> None:
    for arrays in rows.read(str(path), wanted):
        for name, row in wanted.items():
            assert arrays[name].dtype == row.dtype
            assert arrays[name].shape[1:] == row.shape


def check_rows(folder: Path, name: str, wanted: Any, raw: bytes) -> None:
    (folder / name).write_bytes(raw)
    attempt(read_rows, folder / name, wanted)


@times(2)
@given(mutated(npy(), tokens=(b"'O'", b"-1", b"9" * 30, b"True", b"|S0", b"0,")))
def test_arrays(folder: Path, raw: bytes) -> None:
    check_rows(folder, "a.npy", WANTED, raw)


@times(2)
@given(mutated(npz(np.savez), npz(np.savez_compressed), tokens=TOKENS))
def test_archives(folder: Path, raw: bytes) -> None:
    check_rows(folder, "a.npz", WANTED, raw)


@times(2)
@given(mutated(CSV, b"1,2,3\n4,5,6\n", tokens=(*TOKENS, b'"', b"\r", b",", b"nan")))
def test_csv(folder: Path, raw: bytes) -> None:
    check_rows(folder, "a.csv", WANTED, raw)


@times(2)
@given(mutated(LINES, tokens=TOKENS))
@example(b"9" * 5000)
def test_json_lines(folder: Path, raw: bytes) -> None:
    check_rows(folder, "a.jsonl", WANTED, raw)


@times(2)
@given(mutated(png(), tokens=TOKENS))
def test_images(folder: Path, raw: bytes) -> None:
    check_rows(folder, "a.png", IMAGE, raw)


@times(2)
@given(mutated(SETTINGS, b'{"learning_rate": 0.1}', tokens=TOKENS))
@example(b"[" * 9999)
@example(b"learning_rate: " + b"9" * 5000)
@example(b"seed: 2016-13-41")
def test_settings(folder: Path, raw: bytes) -> None:
    (folder / "settings.yaml").write_bytes(raw)
    found = attempt(read_settings, str(folder / "settings.yaml"), MNIST.Settings)
    if isinstance(found, dict):
        attempt(lambda: MNIST.Settings(**found))


@times(2)
@given(mutated(b'{"program": "/a/b.py", "experiment": "Own"}\n', tokens=TOKENS))
def test_programs_of_runs(folder: Path, raw: bytes) -> None:
    (folder / origin.FILE).write_bytes(raw)
    found = attempt(origin.read, str(folder))
    assert found is None or isinstance(found.program, str)


RECORD = json.dumps({"task": "ps 0", "time": 1.5, "code": None}).encode() + b"\n"


@times(2)
@given(mutated(RECORD * 3, tokens=TOKENS))
def test_records_of_tasks(folder: Path, raw: bytes) -> None:
    (folder / task_record.FILE).write_bytes(raw)
    attempt(lambda: list(task_record.read(str(folder))))


def h5() -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as weights:
        group = weights.create_group("layers/dense/vars")
        group.attrs["name"] = "hidden"
        group.create_dataset("0", data=X)
        group.create_dataset("1", data=X, chunks=(2, 3), compression="gzip")
    return file.getvalue()


if importlib.util.find_spec("h5py") is not None:

    @times(2)
    @given(mutated(h5(), tokens=(b"\0" * 8, b"\xff" * 8, b"OHDR", b"TREE", b"SNOD", b"layers")))
    def test_weights_of_keras(folder: Path, raw: bytes) -> None:
        (folder / "a.weights.h5").write_bytes(raw)
        attempt(keras_weights.read, str(folder / "a.weights.h5"))
