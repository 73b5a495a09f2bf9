"""Accepts whole floats as dimensions of a shape, such as `[None, size / 2]`, as until 1.15."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def install() -> None:
    """Replaces the constructor of TensorFlow's dimensions, in this process."""
    module: Any = importlib.import_module("tensorflow.python.framework.tensor_shape")
    original = module.Dimension.__init__

    @functools.wraps(original)
    def create(self: Any, value: Any) -> None:
        is_whole = isinstance(value, float) and value.is_integer()
        original(self, int(value) if is_whole else value)

    module.Dimension.__init__ = create
