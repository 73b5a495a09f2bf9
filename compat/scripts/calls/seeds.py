"""Derives the seed of each random operation from the graph's seed as TensorFlow 1.x did.

Until 1.15 the second half of an operation's seed was its number in the graph; since 2.0 it is the
number of random operations before it.
"""

from __future__ import annotations

import importlib
from typing import Any

from compat._tensorflow import tf1


def install() -> None:
    """Replaces TensorFlow's function that derives seeds, in this process."""
    module: Any = importlib.import_module("tensorflow.python.framework.random_seed")
    original = module.get_seed

    def get_seed(op_seed: int | None) -> Any:
        graph = tf1.get_default_graph()
        if op_seed is None and graph.seed is not None:
            op_seed = graph.version  # The number of its operations.
        return original(op_seed)

    module.get_seed = get_seed
