"""Random numbers as they were: a graph's seed gives each operation the same ones as until 1.15.

There the number of an operation in its graph was the second half of its seed; since 2.0 it is how
many random operations came before.
"""

from __future__ import annotations

import importlib
from typing import Any

from compat._tensorflow import tf1


def install() -> None:
    """Has the operations of this process seeded so."""
    module: Any = importlib.import_module("tensorflow.python.framework.random_seed")
    original = module.get_seed

    def get_seed(op_seed: int | None) -> Any:
        graph = tf1.get_default_graph()
        if op_seed is None and graph.seed is not None:
            op_seed = graph.version  # How many operations it has.
        return original(op_seed)

    module.get_seed = get_seed
