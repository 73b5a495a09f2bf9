"""Files of weights and of arrays that name other files, or claim more than they hold."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

from compat.checkpoint.formats import keras_weights
from compat.errors import UserError
from experiments.export.rows import Row, read

h5py: Any = pytest.importorskip("h5py")
PLACE = "layers/dense/vars"
OTHER = "other.weights.h5"


def weights(path: Path, fill: Callable[[Any, Any], Any]) -> str:
    with h5py.File(str(path), "w") as file:
        group = file.create_group(PLACE)
        group.attrs["name"] = "hidden"
        fill(group, file)
    return str(path)


def external(group: Any, file: Any) -> None:
    secret = str(Path(file.filename).parent / "secret")
    group.create_dataset("0", shape=(40,), dtype="u1", external=[(secret, 0, 40)])


def virtual(group: Any, file: Any) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource(OTHER, f"{PLACE}/0", shape=(4,), dtype="f4")
    group.create_virtual_dataset("0", layout)


def link(group: Any, file: Any) -> None:
    group["0"] = h5py.ExternalLink(OTHER, f"{PLACE}/0")


def soft_link(group: Any, file: Any) -> None:
    file["away"] = h5py.ExternalLink(OTHER, "/layers")
    group["0"] = h5py.SoftLink("/away/dense/vars/0")


def bomb(group: Any, file: Any) -> None:
    group.create_dataset("0", shape=(1 << 40,), dtype="f8", chunks=(1024,))


FOREIGN = [
    (external, "layers/dense/vars/0 has its values in the file '.*secret'"),
    (virtual, "layers/dense/vars/0 is made of values of other files"),
    (link, "layers/dense/vars/0 is a link to the file 'other.weights.h5'"),
    (soft_link, "away is a link to the file 'other.weights.h5'"),
    (bomb, "layers/dense/vars/0 claims 8,796,093,022,208 bytes"),
]


@pytest.mark.parametrize(("fill", "sentence"), FOREIGN)
def test_weights_of_keras_name_no_other_file(
    tmp_path: Path, fill: Callable[[Any, Any], Any], sentence: str
) -> None:
    (tmp_path / "secret").write_text("x" * 40)
    weights(tmp_path / OTHER, lambda group, file: group.create_dataset("0", data=np.ones(4, "f4")))
    path = weights(tmp_path / "evil.weights.h5", fill)
    with pytest.raises(UserError, match=sentence):
        keras_weights.read(path)
    like = keras_weights.Stored(path, {}, {}, {}, {"hidden/kernel": f"{PLACE}/0"})
    with pytest.raises(UserError, match=sentence):  # As if the file had changed since it was read.
        keras_weights.write(str(tmp_path / "new"), like, {"hidden/kernel": np.zeros(40, "u1")})
    assert (tmp_path / "secret").read_text() == "x" * 40


def test_weights_with_links_of_their_own_are_read(tmp_path: Path) -> None:
    def fill(group: Any, file: Any) -> None:
        group.create_dataset("0", data=np.ones(4, "f4"))
        file["layers/back"], file["soft"] = file["/"], h5py.SoftLink("/layers")

    found = keras_weights.read(weights(tmp_path / "a.weights.h5", fill)).values
    assert found["hidden/kernel"].tolist() == [1.0] * 4


def test_arrays_are_not_larger_than_they_are(tmp_path: Path) -> None:
    rows = {"x": Row("float32", (2,))}
    shown = {"descr": "<f4", "fortran_order": False, "shape": (1 << 46, 2)}
    with open(str(tmp_path / "a.npy"), "wb") as file:
        np.lib.format.write_array_header_1_0(file, shown)
        file.write(b"\0" * 64)
    with pytest.raises(UserError, match="a.npy cannot be read"):
        next(read(str(tmp_path / "a.npy"), rows))

    np.savez(str(tmp_path / "b.npz"), x=np.ones([3, 2], "f4"))
    with zipfile.ZipFile(str(tmp_path / "b.npz"), "a") as archive:
        archive.write(str(tmp_path / "a.npy"), "unused.npy")
    (found,) = read(str(tmp_path / "b.npz"), rows)
    assert found["x"].tolist() == [[1.0, 1.0]] * 3
    with zipfile.ZipFile(str(tmp_path / "c.npz"), "w") as archive:
        archive.write(str(tmp_path / "a.npy"), "x.npy")
    with pytest.raises(UserError, match="c.npz cannot be read"):
        next(read(str(tmp_path / "c.npz"), rows))
