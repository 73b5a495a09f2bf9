"""Clicks in Criteo's format: a label, 13 numbers and 26 categories in a line, separated by tabs.

Source: Criteo's Display Advertising Challenge, 2014, and its terabyte of click logs; both have this
format. Missing values are empty. The 26 texts are hexadecimal there, and may be any here.
"""

from __future__ import annotations

import glob
import os
from typing import Any

from compat import tf
from compat.errors import UserError

NUMBERS = 13
CATEGORIES = 26
FINGERPRINTS = 1 << 62  # How many values the hash of a text has.


def files(folder: str, split: str) -> list[str]:
    """Returns the files `SPLIT*` of a folder, sorted by name.

    Raises:
      UserError: there is none.
    """
    names = os.path.join(glob.escape(folder), f"{split}*")
    found = sorted(filter(os.path.isfile, glob.glob(names)))
    if not found:
        raise UserError(
            f"folder {folder} has no file {split}*; name one with files train*, validation* and "
            "test* of tab-separated lines: a label, 13 numbers and 26 categories"
        )
    return found


def lines(paths: list[str], worker: int, workers: int) -> Any:
    """Returns a `tf.data.Dataset` of a worker's lines: of its own files, else of its own lines."""
    if len(paths) >= workers:
        return tf.data.TextLineDataset(paths[worker::workers])
    return tf.data.TextLineDataset(paths).shard(workers, worker)


def parse(batch: Any) -> dict[str, Any]:
    """Parses a whole batch of lines by one operation.

    Args:
      batch: string `[batch]`.

    Returns:
      `labels`, int64 `[batch]`, 0 or 1; `numbers`, float32 `[batch, 13]`, the logarithm of 1 +
      count, where missing and negative ones count 0; and `categories`, int64 `[batch, 26]`, a hash
      of each text in [0, 2^62), the same on each machine and release.
    """
    defaults: list[Any] = [[0], *[[0.0]] * NUMBERS, *[[""]] * CATEGORIES]
    columns = tf.io.decode_csv(batch, defaults, field_delim="\t", use_quote_delim=False)
    numbers, texts = columns[1 : 1 + NUMBERS], columns[1 + NUMBERS :]
    return {
        "labels": tf.cast(columns[0], tf.int64),
        "numbers": tf.math.log1p(tf.nn.relu(tf.stack(numbers, axis=1))),
        "categories": tf.strings.to_hash_bucket_fast(tf.stack(texts, axis=1), FINGERPRINTS),
    }
