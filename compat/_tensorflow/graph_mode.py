"""Lets the graph of a step on the modern runtime be built as one of TensorFlow 1.x.

Some parts of TensorFlow ask whether eager execution is enabled, which it is around such a graph.
`ExponentialMovingAverage` then refuses tensors, and `keras.Input` is no placeholder, while the
layers of Keras 2 are those of TensorFlow 1.x there, which call themselves for ever on it. Its old
cells alone get the answer as it is: they look a variable up in a list, which compares tensors.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any

from compat._tensorflow.release import tf, tf1

_QUESTION = "executing_eagerly_outside_functions"
_CELLS = ("legacy_cells", "rnn_cell_impl")
_STEP = "wrapped_function"  # The graphs of `tf1.wrap_function`; Keras knows them by it as well.


@functools.lru_cache(maxsize=None)
def answer() -> None:
    """Makes them know a step; further calls do nothing."""
    averages: Any = importlib.import_module("tensorflow.python.training.moving_averages")
    own: Any = types.ModuleType(averages.ops.__name__)
    vars(own).update(vars(averages.ops))
    setattr(own, _QUESTION, tf.executing_eagerly)
    averages.ops = own
    ask = getattr(tf1, _QUESTION)

    def answered() -> bool:
        asker = str(sys._getframe(1).f_globals.get("__name__"))
        return bool(ask()) and (asker.endswith(_CELLS) or not _is_in_step())

    # Each package of Keras asks one of these.
    for module in (tf1, tf.compat.v1, importlib.import_module(tf1.__name__)):
        setattr(module, _QUESTION, answered)


def _is_in_step() -> bool:
    graph: Any = tf1.get_default_graph()
    while graph is not None:
        if str(getattr(graph, "name", "")).startswith(_STEP):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False
