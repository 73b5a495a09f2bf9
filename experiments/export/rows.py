"""Reads the rows that a model predicts from: NumPy's files, CSV, JSON lines, or a PNG image.

    for arrays in read("rows.csv", {"x": Row("float32", (10,))}):
        model.predict(arrays)  # {"x": float32 [rows, 10]}, up to 1000 rows at a time

Numbers are converted to the dtype of the input. One that would change by more than the rounding of
a float is an error.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Sequence, TextIO, Tuple

import numpy as np

from compat.checkpoint.matching import cast
from compat.errors import UserError, reason_of

MOST_ROWS = 1000  # The most rows in a call of the model.
STDIN = "-"
_JSON = "JSON lines, each an object of the inputs by name"
Arrays = Dict[str, np.ndarray]
_Told = Tuple[str, Mapping[str, Any]]  # The place of a row, for errors, and its values by input.


@dataclass(frozen=True)
class Row:
    """The type and the shape of the values of one input in one row."""

    dtype: str  # NumPy's name of the dtype, "string" for text.
    shape: tuple[Any, ...]  # None for a dimension of any size.

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


Rows = Mapping[str, Row]


def read(path: str, rows: Rows) -> Iterator[Arrays]:
    """Yields arrays of up to 1000 rows, by the names of the inputs; other values are ignored.

    Args:
      path: a file that ends in .npy, .npz, .csv, .jsonl or .png, or "-" for JSON lines on standard
        input.
      rows: the type and shape of each input, by name.

    Raises:
      UserError: the file cannot be read, or its values do not fit the inputs.
    """
    reader = _READERS.get(Path(path).suffix.lower()) if path != STDIN else _json_lines
    if reader is None:
        raise UserError(
            f"--input={path} is of no known kind; give a file that ends in "
            f"{', '.join(_READERS)}, or - for {_JSON}"
        )
    try:
        yield from reader(path, rows)
    except UnicodeDecodeError as error:
        raise UserError(f"--input={path} is not UTF-8 text; convert it") from error
    except _BROKEN as error:
        reason = reason_of(error)
        raise UserError(f"--input={path} cannot be read ({reason}); name another file") from error


class _NotReadableError(Exception):
    """A file that another package cannot read; the message is the reason that the package gives."""


_BROKEN = (
    OSError,
    EOFError,
    MemoryError,  # The header of an array claims more than any machine has.
    zipfile.BadZipFile,
    zlib.error,
    csv.Error,
    _NotReadableError,
)


def _numpy(path: str, rows: Rows) -> Iterator[Arrays]:
    try:
        # Mapped into memory: a header that claims more data than the file has allocates nothing.
        # Arrays that are not inputs are not loaded.
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(found, np.ndarray):
            whole = {_only(path, rows): found}
        else:
            unused = np.zeros(0)
            whole = {name: found[name] if name in rows else unused for name in found.files}
    except UserError:
        raise
    except Exception as error:  # NumPy raises errors of many types for broken files.
        raise _NotReadableError(reason_of(error)) from error
    missing = [name for name in rows if name not in whole]
    if missing:
        raise UserError(
            f"--input={path} has no array {missing[0]!r}, but {', '.join(whole) or 'none'}; give "
            f"one for each of the inputs {', '.join(rows)}"
        )
    arrays = {
        name: _checked(f"--input={path}", name, whole[name], row) for name, row in rows.items()
    }
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise UserError(f"the arrays of --input={path} have {counts} rows; give each as many")
    for start in range(0, max(counts.values()), MOST_ROWS):
        yield {name: array[start : start + MOST_ROWS] for name, array in arrays.items()}


def _csv(path: str, rows: Rows) -> Iterator[Arrays]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        first = next(reader, [])
        lines: Iterable[list[str]] = reader
        columns = _columns(first, rows)
        if columns is None:
            columns = {_only(path, rows, "a first line that names their columns"): None}
            if any(map(_is_number, first)):  # A row, not a header; it may have empty values.
                lines = itertools.chain([first], reader)
        found = columns

        def values() -> Iterator[_Told]:
            for number, line in enumerate(filter(None, lines), 1):
                where = f"--input={path}, row {number}"
                yield where, {n: _cells(where, line, found[n], row) for n, row in rows.items()}

        yield from _stacked(values(), rows)


def _columns(header: Sequence[str], rows: Rows) -> dict[str, list[int] | None] | None:
    """Returns the indices of each input's columns; None if the header does not name all inputs."""
    found: dict[str, list[int]] = {}
    for index, title in enumerate(map(str.strip, header)):
        found.setdefault(title if title in rows else title.rpartition(".")[0], []).append(index)
    return {name: found[name] for name in rows} if set(rows) <= set(found) else None


def _cells(where: str, line: list[str], columns: list[int] | None, row: Row) -> np.ndarray:
    cells = line if columns is None else [line[i] for i in columns if i < len(line)]
    try:
        found = np.array(cells if row.dtype == "string" else [_number(cell) for cell in cells])
        return found.reshape([-1 if size is None else size for size in row.shape])
    except ValueError as error:
        raise UserError(f"{where} has {len(cells)} cells ({error}); expected {row}") from error


def _number(cell: str) -> float | int:
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _json_lines(path: str, rows: Rows) -> Iterator[Arrays]:
    def values(file: TextIO) -> Iterator[_Told]:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"--input={path}, line {number}"
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{where} is not valid JSON ({error}); give {_JSON}") from error
            if not isinstance(found, dict):
                found = {_only(path, rows): found}
            missing = [name for name in rows if name not in found]
            if missing:
                raise UserError(f"{where} has no {missing[0]!r}; give {', '.join(rows)}")
            yield where, found

    if path == STDIN:
        yield from _stacked(values(sys.stdin), rows)
        return
    with open(path, encoding="utf-8-sig") as file:
        yield from _stacked(values(file), rows)


def _png(path: str, rows: Rows) -> Iterator[Arrays]:
    from PIL import Image

    name = _only(path, rows)
    shape = rows[name].shape
    mode = "L" if len(shape) == 2 or shape[2:] == (1,) else "RGB"
    try:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert(mode))
    except (ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _NotReadableError(error) from error
    if shape[2:] == (1,):
        pixels = pixels[..., None]
    yield {name: _checked(f"--input={path}", name, pixels[None], rows[name])}


def _only(path: str, rows: Rows, else_give: str = "them by name, as .npz or .jsonl") -> str:
    """Returns the name of the only input, for a file whose values have no names.

    If there are several inputs, raises a `UserError` that tells the user to give `else_give`.
    """
    if len(rows) != 1:
        raise UserError(
            f"--input={path} does not name the inputs {', '.join(rows)}; give {else_give}"
        )
    return next(iter(rows))


def _stacked(values: Iterator[_Told], rows: Rows) -> Iterator[Arrays]:
    while True:
        found = list(itertools.islice(values, MOST_ROWS))
        if not found:
            return
        arrays = {}
        for name, spec in rows.items():
            parts = [_row(where, name, row[name], spec) for where, row in found]
            differs = [i for i, part in enumerate(parts) if part.shape != parts[0].shape]
            if differs:  # A dimension may have any size, but the same in all rows of a batch.
                raise UserError(
                    f"{found[differs[0]][0]}: input {name!r} is {list(parts[differs[0]].shape[1:])}"
                    f", the rows before {list(parts[0].shape[1:])}; give rows of one shape"
                )
            arrays[name] = np.concatenate(parts)
        yield arrays


def _row(where: str, name: str, value: Any, row: Row) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:  # Lists of different lengths; old releases of NumPy make an object array.
        array = np.empty([], object)
    return _checked(where, name, array[None], row)


def _checked(where: str, name: str, array: np.ndarray, row: Row) -> np.ndarray:
    """Returns an array `[rows, ...]` in the dtype of its input, or raises a `UserError`."""
    shape = array.shape[1:]
    fits = array.ndim and len(shape) == len(row.shape)
    fits = fits and all(want in (None, size) for want, size in zip(row.shape, shape))
    found: np.ndarray | None = array
    if row.dtype == "string":
        fits = fits and array.dtype.kind in "SU"
    elif array.dtype != np.dtype(row.dtype):
        found = cast(array, np.dtype(row.dtype))
    if not fits or found is None:
        kind = "text" if array.dtype.kind in "SU" else array.dtype.name
        what = f"{kind} {list(shape)} a row"
        same = "" if found is not None else ", without losing digits or infinite"
        raise UserError(f"{where}: input {name!r} is {what}; expected {row}{same}")
    return found


_READERS: dict[str, Callable[[str, Rows], Iterator[Arrays]]] = {
    ".npy": _numpy,
    ".npz": _numpy,
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".png": _png,
}
