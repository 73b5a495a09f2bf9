"""Initial values from NumPy: the same on every TensorFlow and runtime, for the same seed."""

from __future__ import annotations

import math
from typing import Sequence

import numpy as np


def normal(random: np.random.RandomState, shape: Sequence[int], stddev: float = 1.0) -> np.ndarray:
    """Returns float32 `shape`, normally distributed round 0, as `tf.random_normal` makes them."""
    return (stddev * random.standard_normal(tuple(shape))).astype(np.float32)


def he_normal(random: np.random.RandomState, shape: Sequence[int]) -> np.ndarray:
    """Returns float32 `shape`, scaled for layers with rectifiers.

    Source: He et al., Delving Deep into Rectifiers, 2015, equation 10.

    Args:
      random: the source of chance.
      shape: the output axis last; all others count as inputs of a unit.
    """
    return normal(random, shape, stddev=math.sqrt(2.0 / np.prod(shape[:-1])))


def zeros(shape: Sequence[int]) -> np.ndarray:
    """Returns float32 `shape`, all 0."""
    return np.zeros(tuple(shape), np.float32)
