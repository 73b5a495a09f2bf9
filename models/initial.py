"""Initial values from NumPy, which depend only on the seed, not on release or runtime."""

from __future__ import annotations

import math
from typing import Sequence

import numpy as np


def normal(random: np.random.RandomState, shape: Sequence[int], stddev: float = 1.0) -> np.ndarray:
    """Returns float32 `shape`, normally distributed with mean 0, like `tf.random_normal`."""
    return (stddev * random.standard_normal(tuple(shape))).astype(np.float32)


def he_normal(random: np.random.RandomState, shape: Sequence[int]) -> np.ndarray:
    """Returns float32 `shape`, scaled for layers with ReLU activations.

    Source: He et al., Delving Deep into Rectifiers, 2015, equation 10.

    Args:
      random: random number generator.
      shape: shape with the output axis last; the other axes are inputs.
    """
    return normal(random, shape, stddev=math.sqrt(2.0 / np.prod(shape[:-1])))


def zeros(shape: Sequence[int]) -> np.ndarray:
    """Returns float32 `shape`, all 0."""
    return np.zeros(tuple(shape), np.float32)
