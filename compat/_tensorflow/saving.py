"""Keeps hooks that save every few steps from reading the global step after each of them.

`CheckpointSaverHook` fetches the global step with each call, and reads it once more where a
checkpoint may be due. Newer releases assume that a call may be a million steps, so they read it
after each: one more call, and in a cluster one more message to a parameter server. A call is one
step here, as in TensorFlow 1.15.
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
