"""A layer's weights as images, for TensorBoard."""

from __future__ import annotations

import numpy as np


def as_images(weights: np.ndarray, most: int = 16) -> np.ndarray:
    """Returns a layer's weights as grey images, one for each of its first `most` units.

    Args:
      weights: `[28 * 28, units]`, or `[height, width, 1, maps]`.
      most: how many units are shown.

    Returns:
      uint8 `[units, height, width, 1]`; the smallest weight of a unit is black, the largest white.
    """
    if weights.ndim == 2:
        weights = weights.reshape(28, 28, 1, -1)
    images = np.moveaxis(weights[..., :most], -1, 0)
    low = images.min(axis=(1, 2, 3), keepdims=True)
    high = images.max(axis=(1, 2, 3), keepdims=True)
    return np.round(255 * (images - low) / np.maximum(high - low, 1e-12)).astype(np.uint8)
