"""Lets steps on the modern runtime keep moving averages of tensors, such as of a loss.

`ExponentialMovingAverage` refuses tensors, which have a value once, where eager execution is
enabled. In the graph of a step they have one in each call, as in a graph of TensorFlow 1.x.
"""

from __future__ import annotations

import functools
import importlib
import types
from typing import Any

from compat._tensorflow.release import tf


@functools.lru_cache(maxsize=None)
def average_tensors() -> None:
    """Makes it refuse the tensors of eager code alone; further calls do nothing."""
    averages: Any = importlib.import_module("tensorflow.python.training.moving_averages")
    own: Any = types.ModuleType(averages.ops.__name__)
    vars(own).update(vars(averages.ops))
    own.executing_eagerly_outside_functions = tf.executing_eagerly
    averages.ops = own
