"""Packages beside TensorFlow with the names that they had from 2016 to 2019.

import compat.v1.packages.numpy as np
from compat.v1.packages.sklearn.cross_validation import train_test_split
"""

from __future__ import annotations

__path__: list[str] = []  # `compat.v1._view` finds its modules.
