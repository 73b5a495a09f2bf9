"""Prevents TensorFlow from adding constants first, which loses small constants.

Since 1.15 a pass of its graph optimizer, `constant_folding`, computes `1 - p + 1e-8` as
`(1 + 1e-8) - p`, which loses 1e-8 in float32. If p is 1, the logarithm is infinite and its gradient
NaN, and so are all later weights. Without this pass, expressions that contain only constants are
still computed only once, by another pass.
"""

from __future__ import annotations

import functools
from typing import Any

from compat._tensorflow.release import tf, tf1


@functools.lru_cache(maxsize=None)
def keep_order() -> None:
    """Keeps TensorFlow from reordering additions, by disabling its pass `constant_folding`.

    A session whose config sets `constant_folding` keeps that setting. Further calls do nothing.
    """
    # This setting is for functions.
    tf.config.optimizer.set_experimental_options({"constant_folding": False})
    for kind in (tf1.Session, tf1.InteractiveSession):
        kind.__init__ = _without_pass(kind.__init__)


def _without_pass(init: Any) -> Any:
    @functools.wraps(init)
    def create(self: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
        default = tf1.ConfigProto()
        if config is not None:
            default.CopyFrom(config)
        rewrites = default.graph_options.rewrite_options
        if rewrites.constant_folding == 0:  # The default value.
            # The value for off; TensorFlow has no public names for these values.
            rewrites.constant_folding = 2
        init(self, target, graph, default)

    return create
