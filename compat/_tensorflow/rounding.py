"""Keeps TensorFlow from adding constants first, which loses the small ones.

Since 1.15 its graph optimizer computes `1 - p + 1e-8` as `(1 + 1e-8) - p`, of which 1e-8 is lost in
float32: where p is 1, the logarithm is infinite, its gradient NaN, and so is the model from then
on. What consists of constants alone is still computed once, by another pass.
"""

from __future__ import annotations

import functools
from typing import Any

from compat._tensorflow.release import tf, tf1


@functools.lru_cache(maxsize=None)
def keep_order() -> None:
    """Turns that pass off for sessions that do not ask for it; further calls do nothing."""
    tf.config.optimizer.set_experimental_options({"constant_folding": False})  # Of functions.
    for kind in (tf1.Session, tf1.InteractiveSession):
        kind.__init__ = _without_pass(kind.__init__)


def _without_pass(init: Any) -> Any:
    @functools.wraps(init)
    def create(self: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
        own = tf1.ConfigProto()
        if config is not None:
            own.CopyFrom(config)
        rewrites = own.graph_options.rewrite_options
        if rewrites.constant_folding == 0:  # Its default.
            rewrites.constant_folding = 2  # Off; the names of both are not public.
        init(self, target, graph, own)

    return create
