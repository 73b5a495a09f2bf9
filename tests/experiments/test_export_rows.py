"""Rows of files become arrays of a model's inputs, or one line says why not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat.errors import UserError
from experiments.export.rows import MOST_ROWS, Row, read

IMAGE = {"image": Row("uint8", (2, 2))}
CLICKS = {"numbers": Row("float32", (2,)), "kind": Row("int64", ()), "tag": Row("string", ())}
ANY = {"words": Row("int64", (None,))}


def one(path: Path, rows: dict[str, Row]) -> dict[str, Any]:
    (found,) = read(str(path), rows)
    for name, array in found.items():
        assert array.dtype.kind in "SU" or array.dtype == rows[name].dtype
    return {name: array.tolist() for name, array in found.items()}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_numpy(tmp_path: Path) -> None:
    images = np.arange(8).reshape(2, 2, 2)
    np.save(str(tmp_path / "images.npy"), images)
    np.savez(str(tmp_path / "images.npz"), image=images, label=[1, 2])
    for name in ("images.npy", "images.npz"):
        assert one(tmp_path / name, IMAGE) == {"image": images.tolist()}


def test_csv_with_one_input_takes_columns_in_order(file: Any) -> None:
    expected = {"image": [[[1, 2], [3, 4]]]}
    assert one(file("a.csv", "1,2,3,4\n"), IMAGE) == expected
    assert one(file("a.csv", "a,b,c,d\n1,2,3.0,4\n\n"), IMAGE) == expected
    assert (
        one(file("a.csv", "label,image.0,image.1,image.2,image.3\n9,1,2,3,4\n"), IMAGE) == expected
    )


def test_csv_with_several_inputs_has_a_header(file: Any) -> None:
    text = "tag,kind,numbers.a,numbers.b,other\nx,3,0.5,1,\ny,4,2,1e2,\n"
    expected = {"numbers": [[0.5, 1.0], [2.0, 100.0]], "kind": [3, 4], "tag": ["x", "y"]}
    assert one(file("a.csv", text), CLICKS) == expected


def test_json_lines(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"numbers": [0.5, 1], "kind": 3, "tag": "x", "label": None}
    expected = {"numbers": [[0.5, 1.0]], "kind": [3], "tag": ["x"]}
    assert one(file("a.jsonl", json.dumps(line) + "\n\n"), CLICKS) == expected
    assert one(file("a.jsonl", "[[1, 2], [3, 4]]"), IMAGE) == {"image": [[[1, 2], [3, 4]]]}
    monkeypatch.setattr("sys.stdin", io.StringIO("[1, 2, 3]\n"))
    assert one(Path("-"), ANY) == {"words": [[1, 2, 3]]}


def test_image(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "a.png"
    Image.fromarray(np.array([[0, 50], [100, 255]], np.uint8)).save(str(path))
    assert one(path, IMAGE) == {"image": [[[0, 50], [100, 255]]]}
    assert np.shape(one(path, {"x": Row("float32", (2, 2, 3))})["x"]) == (1, 2, 2, 3)
    assert np.shape(one(path, {"x": Row("uint8", (None, None, 1))})["x"]) == (1, 2, 2, 1)


def test_many_rows_come_in_parts(file: Any) -> None:
    path = file("a.csv", "1,2,3,4\n" * (MOST_ROWS + 1))
    assert [len(part["image"]) for part in read(str(path), IMAGE)] == [MOST_ROWS, 1]


@pytest.mark.parametrize(
    ("name", "text", "rows", "sentence"),
    [
        ("a.txt", "1", IMAGE, "a.txt is of no known kind; give a file that ends in .npy, .npz,"),
        ("a.npy", "1", IMAGE, "a.npy cannot be read ("),
        ("a.npz", "PK\3\4", IMAGE, "a.npz cannot be read ("),
        ("a.png", "1", IMAGE, "a.png cannot be read ("),
        ("a.csv", "1,2,3\n", IMAGE, "a.csv, row 1 has 3 cells (cannot reshape"),
        ("a.csv", "1,2,3,x\n1,2,3,x\n", IMAGE, "a.csv, row 1 has 4 cells (could not convert"),
        ("a.csv", "1,,3,4\n1,2,3,4\n", IMAGE, "a.csv, row 1 has 4 cells (could not convert"),
        ("a.csv", "1,2,3,256\n", IMAGE, "row 1: input 'image' is int64 [2, 2] a row; expected uin"),
        ("a.csv", "1,2,3,0.5\n", IMAGE, "row 1: input 'image' is float64 [2, 2] a row; expected "),
        ("a.csv", "1,2\n", CLICKS, "does not name the inputs numbers, kind, tag; give a first"),
        ("a.jsonl", "{", IMAGE, "a.jsonl, line 1 is not valid JSON ("),
        ("a.jsonl", "1" * 5000, IMAGE, "a.jsonl, line 1"),
        ("a.jsonl", "[" * 100000, IMAGE, "a.jsonl, line 1 is not valid JSON ("),
        ("a.jsonl", '{"label": 1}', IMAGE, "a.jsonl, line 1 has no 'image'; give image"),
        ("a.jsonl", "[[1, 2], [3]]", IMAGE, "line 1: input 'image' is object "),
        (
            "a.jsonl",
            "[1]\n[1, 2]\n",
            ANY,
            "line 2: input 'words' is [2], the rows before [1]; give",
        ),
        ("a.jsonl", '{"numbers": [1, NaN], "kind": 1, "tag": ""}', CLICKS, "or infinite"),
        ("a.jsonl", '{"numbers": [1, 2], "kind": 1, "tag": 3}', CLICKS, "input 'tag' is int64 []"),
        ("a.jsonl", "3", CLICKS, "does not name the inputs numbers, kind, tag; give them by name"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
def test_what_is_wrong_takes_one_line(
    file: Any, name: str, text: str, rows: dict[str, Row], sentence: str
) -> None:
    with pytest.raises(UserError) as error:
        one(file(name, text), rows)
    assert sentence in str(error.value)
    assert "--input=" in str(error.value)


def test_what_is_missing_takes_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing.csv cannot be read .No such file"):
        one(tmp_path / "nothing.csv", IMAGE)
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(UserError, match="a.csv is not UTF-8 text"):
        one(tmp_path / "a.csv", IMAGE)
    np.savez(str(tmp_path / "a.npz"), images=[1])
    with pytest.raises(UserError, match="has no array 'image', but images; give one for each"):
        one(tmp_path / "a.npz", IMAGE)
