"""Clicks in Criteo's format: a label, 13 numbers and 26 categories in a line, separated by tabs.

Criteo's Display Advertising Challenge of 2014 and its terabyte of click logs have this format.
Missing values are empty. Criteo's categories are hexadecimal texts; here any texts are accepted.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Sequence

from compat import tf, tf1
from compat.errors import UserError

NUMBERS = 13
CATEGORIES = 26
_LINE = "lines of a label (0 or 1), 13 numbers and 26 categories, separated by tabs"
_WELL_FORMED = re.compile(rb"[01]?(\t-?\d*){13}(\t[^\t\r\n]*){26}\r?\n?").fullmatch
FINGERPRINTS = 1 << 62  # Number of different hashes of a category's text.


def files(folder: str, split: str) -> list[str]:
    """Returns the files `SPLIT*` of a folder, sorted by name.

    Raises:
      UserError: there is no such file, or all are empty.
    """
    names = os.path.join(glob.escape(folder), f"{split}*")
    found = sorted(filter(os.path.isfile, glob.glob(names)))
    if not found:
        raise UserError(
            f"folder {folder} has no file {split}*; name one with files train*, validation* and "
            f"test* of {_LINE}"
        )
    if not any(map(os.path.getsize, found)):
        raise UserError(f"{found[0]} is empty; write into it {_LINE}")
    return found


def malformed(paths: Sequence[str]) -> UserError | None:
    """Returns an error that names the first line that `parse` refuses; None if there is none.

    Reads the files from their beginning, at about a million lines in a second.
    """
    for path in paths:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                reason = None if _WELL_FORMED(line) else _reason(line)
                if reason:
                    return UserError(f"line {number} of {path} has {reason}; write {_LINE}")
    return None


def _reason(line: bytes) -> str | None:
    columns = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
    if len(columns) != 1 + NUMBERS + CATEGORIES:
        return f"{len(columns)} columns, not {1 + NUMBERS + CATEGORIES}"
    if columns[0].strip() not in ("0", "1", ""):
        return f"label {columns[0][:40]!r}, neither 0 nor 1"
    for place, text in enumerate(columns[1 : 1 + NUMBERS], 2):
        try:
            float(text or 0)
        except ValueError:
            return f"{text[:40]!r} for a number in column {place}"
    return None


def lines(paths: list[str], worker: int, workers: int) -> Any:
    """Returns a `tf.data.Dataset` of the lines for one worker.

    The workers divide the files or, if there are fewer files than workers, the lines.
    """
    if len(paths) >= workers:
        return tf.data.TextLineDataset(paths[worker::workers])
    return tf.data.TextLineDataset(paths).shard(workers, worker)


def parse(batch: Any) -> dict[str, Any]:
    """Parses a whole batch of lines by one operation.

    Args:
      batch: string `[batch]`.

    Returns:
      `labels`, int64 `[batch]`, 0 or 1; `numbers`, float32 `[batch, 13]`, log(1 + number), and 0
      for missing and negative numbers; and `categories`, int64 `[batch, 26]`, a hash of each text
      in [0, 2^62), the same on each machine and release.

    A malformed line raises a `tf.errors.InvalidArgumentError` when the tensors are computed;
    `malformed` finds the line.
    """
    defaults: list[Any] = [[0], *[[0.0]] * NUMBERS, *[[""]] * CATEGORIES]
    columns = tf.io.decode_csv(batch, defaults, field_delim="\t", use_quote_delim=False)
    binary = tf1.assert_equal(columns[0] // 2, 0, message="a label is neither 0 nor 1")
    with tf.control_dependencies([binary] if binary is not None else []):
        labels = tf.cast(columns[0], tf.int64)
    numbers, texts = columns[1 : 1 + NUMBERS], columns[1 + NUMBERS :]
    return {
        "labels": labels,
        "numbers": tf.math.log1p(tf.nn.relu(tf.stack(numbers, axis=1))),
        "categories": tf.strings.to_hash_bucket_fast(tf.stack(texts, axis=1), FINGERPRINTS),
    }
