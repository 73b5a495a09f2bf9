"""Computes the predictions of a run's model for each row of a file; prints a line of JSON for each.

python -m experiments.export.predict runs/1 --input=digits.npy
python -m experiments.export.predict runs/1 --input=rows.csv --output=predictions.jsonl
python -m experiments.export.predict runs/1 --input=- < rows.jsonl
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any, Iterator, TextIO

import numpy as np

from compat.errors import UserError
from compat.processes.command import run as run_command
from experiments.export import commands, rows


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = commands.parser("experiments.export.predict", __doc__)
    kinds = "rows: a .npy, .npz, .csv, .jsonl or .png file; - for JSON lines on standard input"
    parser.add_argument("--input", metavar="FILE", required=True, help=kinds)
    parser.add_argument("--output", metavar="FILE", help="JSON lines; default: standard output")
    options = parser.parse_args(argv)
    commands.start_tensorflow()

    with commands.opened(options) as model:
        wanted = {name: _row(name, placeholder) for name, placeholder in model.inputs.items()}
        with _written(options.output) as file:
            for arrays in rows.read(options.input, wanted):
                for line in _lines(model.predict(arrays), len(next(iter(arrays.values())))):
                    file.write(line + "\n")


def _row(name: str, placeholder: Any) -> rows.Row:
    shape = placeholder.shape.as_list()
    if not shape or "/" in name:
        raise UserError(
            f"input {name!r} has no row for each example, so files cannot give it; export the "
            "model with python -m experiments.export and call that"
        )
    return rows.Row(placeholder.dtype.name, tuple(shape[1:]))


def _lines(outputs: dict[str, np.ndarray], count: int) -> Iterator[str]:
    for name, array in outputs.items():
        if array.shape[:1] != (count,):
            raise UserError(
                f"output {name!r} of predict() is {list(array.shape)} for {count} rows; return a "
                "tensor [batch, ...]"
            )
    plain = {name: _plain(array) for name, array in sorted(outputs.items())}
    for i in range(count):
        yield json.dumps({name: values[i] for name, values in plain.items()})


def _plain(array: np.ndarray) -> Any:
    """Returns an array as lists of numbers and texts; NaN and infinity, not in JSON, are texts."""
    if array.dtype.kind == "f":
        # By way of text, a float32 has the few digits that identify it, and not 17.
        array = array.astype(str).astype(np.float64)
        if not np.isfinite(array).all():
            array = np.where(np.isfinite(array), array.astype(object), array.astype(str))
    elif array.dtype.kind == "O":
        array = np.vectorize(lambda raw: raw.decode("utf-8", "backslashreplace"), [object])(array)
    return array.tolist()


@contextlib.contextmanager
def _written(path: str | None) -> Iterator[TextIO]:
    """Yields standard output, or a file that replaces `path` when all is written."""
    if path is None:
        yield sys.stdout
        return
    with commands.output(path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        yield file


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))
