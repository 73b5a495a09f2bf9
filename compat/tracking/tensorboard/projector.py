"""Writes files with points for TensorBoard's projector."""

from __future__ import annotations

import contextlib
import math
import os
import re
from typing import TYPE_CHECKING, Sequence

from compat.tracking.files import replacing, write_atomically
from compat.tracking.tensorboard.summaries import png

if TYPE_CHECKING:
    import numpy as np

_CONFIG = "projector_config.pbtxt"  # The name that TensorBoard expects in the folder of a run.
_FOLDER = "projector"
_MOST = 10_000  # A limit, since the browser computes the layout.
_LONGEST_SIDE = 4096  # Pixels of a texture that every browser supports.


def write(
    logdir: str,
    name: str,
    vectors: np.ndarray,
    labels: Sequence[str] | None,
    images: np.ndarray | None,
) -> None:
    """Writes an embedding beside those that the run has; see `Writer.embedding`.

    Raises:
      OSError: The folder cannot be written to.
    """
    from google.protobuf import text_format  # type: ignore[import-untyped]
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    lengths = {len(part) for part in (vectors, labels, images) if part is not None}
    if vectors.ndim != 2 or vectors.shape[1] < 2 or len(lengths) > 1:
        raise ValueError(
            f"embedding {name!r} has vectors {list(vectors.shape)}, and lengths {sorted(lengths)};"
            " expected [n, width], and as many labels and images, or none"
        )
    os.makedirs(os.path.join(logdir, _FOLDER), exist_ok=True)
    config, path = ProjectorConfig(), os.path.join(logdir, _CONFIG)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file, contextlib.suppress(text_format.ParseError):
            text_format.Parse(file.read(), config)
    others = [entry for entry in config.embeddings if entry.tensor_name != name]
    config.ClearField("embeddings")
    config.embeddings.extend(others)
    entry = config.embeddings.add(tensor_name=name)
    stem = f"{_FOLDER}/{re.sub('[^A-Za-z0-9_.-]', '_', name)}"
    rows = ("\t".join(f"{x:.6g}" for x in row) for row in vectors[:_MOST].tolist())
    entry.tensor_path = stem + ".tsv"
    write_atomically(os.path.join(logdir, entry.tensor_path), "\n".join(rows))
    if labels is not None:
        entry.metadata_path = stem + ".labels.tsv"
        lines = (" ".join(str(label).split()) for label in labels[:_MOST])
        write_atomically(os.path.join(logdir, entry.metadata_path), "\n".join(lines))
    if images is not None:
        side = math.ceil(math.sqrt(len(images[:_MOST])))
        every = math.ceil(side * max(images.shape[1:3]) / _LONGEST_SIDE)
        images = images[:_MOST, ::every, ::every]
        entry.sprite.image_path = stem + ".png"
        entry.sprite.single_image_dim.extend([images.shape[2], images.shape[1]])
        with replacing(os.path.join(logdir, entry.sprite.image_path)) as picture:
            picture.write(png(_sprite(images, side)))
    write_atomically(path, text_format.MessageToString(config))


def _sprite(images: np.ndarray, side: int) -> np.ndarray:
    """Returns images as one image: rows of `side` images each."""
    import numpy as np

    _, height, width, channels = images.shape
    sheet = np.zeros([side * side, height, width, channels], np.uint8)
    sheet[: len(images)] = images
    rows = sheet.reshape(side, side, height, width, channels).transpose(0, 2, 1, 3, 4)
    return rows.reshape(side * height, side * width, channels)
