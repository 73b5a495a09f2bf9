"""Keeps hooks that save every few steps from reading the global step after each call.

`CheckpointSaverHook` fetches the global step with each call of `run`, and reads it again if a
checkpoint may be due. Newer releases assume that a call may make a million steps, so they read it
again after each call. That is one more call and, in a cluster, one more message to a parameter
server. Here a call makes one step, as in TensorFlow 1.15.
"""

from __future__ import annotations

import functools
from typing import Any

from compat._tensorflow import private
from compat._tensorflow.release import tf1


@functools.lru_cache(maxsize=None)
def read_steps_when_due() -> None:
    """Makes `CheckpointSaverHook` read the step only when it may save; further calls do nothing."""
    hook_class = tf1.train.CheckpointSaverHook
    init = hook_class.__init__

    @functools.wraps(init)
    def create(hook: Any, *args: Any, **kwargs: Any) -> None:
        init(hook, *args, **kwargs)
        private.expect_single_steps(hook)

    hook_class.__init__ = create
