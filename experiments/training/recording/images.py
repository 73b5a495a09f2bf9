"""A layer's weights as images, for TensorBoard."""

from __future__ import annotations

import numpy as np


def as_images(weights: np.ndarray) -> np.ndarray:
    """Returns a layer's weights as grey images, one for each of its first 16 units.

    The weights are `[28 * 28, units]` or `[height, width, 1, maps]`, the images uint8 `[units,
    height, width, 1]`; the smallest weight of a unit is black, the largest white.
    """
    if weights.ndim == 2:
        weights = weights.reshape(28, 28, 1, -1)
    images = np.moveaxis(weights[..., :16], -1, 0)
    low = images.min(axis=(1, 2, 3), keepdims=True)
    high = images.max(axis=(1, 2, 3), keepdims=True)
    return np.round(255 * (images - low) / np.maximum(high - low, 1e-12)).astype(np.uint8)
