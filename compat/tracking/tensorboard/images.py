"""Images as TensorBoard's image plugin reads them in all its releases."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from tensorboard.compat.proto.summary_pb2 import Summary


def image_summary(tag: str, images: np.ndarray) -> Summary:
    """Returns the summary of several images under one name.

    Args:
      tag: The name.
      images: uint8 `[k, h, w, c]`, c = 1 (grey), 3 (RGB) or 4 (RGBA).

    Raises:
      ValueError: If `images` is anything else.
    """
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.image.metadata import create_summary_metadata
    from tensorboard.util.tensor_util import make_tensor_proto

    if str(images.dtype) != "uint8" or images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise ValueError(
            f"images {tag!r} are {images.dtype} {list(images.shape)};"
            " expected uint8 [k, h, w, c] with c = 1, 3 or 4"
        )
    _, height, width, _ = images.shape
    # The plugin's tensor: width and height as text, then one PNG an image.
    texts = [str(width).encode(), str(height).encode()] + [_png(image) for image in images]
    return Summary(
        value=[
            Summary.Value(
                tag=tag,
                metadata=create_summary_metadata(display_name=None, description=None),
                tensor=make_tensor_proto(texts),
            )
        ]
    )


def _png(image: np.ndarray) -> bytes:
    from PIL import Image

    # Pillow knows grey images as [h, w].
    encoded = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(encoded, "PNG")
    return encoded.getvalue()
