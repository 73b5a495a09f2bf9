"""The learning rate as a function of the step: constant or a cosine, after a warm-up."""

from __future__ import annotations

import math
from typing import Any

from compat._tensorflow import tf
from compat.errors import UserError


def scheduled(settings: Any, step: Any, total_steps: int | None) -> Any:
    """Returns the learning rate at a step, as --schedule and --warmup_steps say.

    The warm-up is a line from 0 to --learning_rate. The cosine falls from there to 0 at the last
    step. Source: Loshchilov and Hutter, SGDR: Stochastic gradient descent with warm restarts, 2017,
    without restarts; Goyal et al., Accurate, large minibatch SGD, 2017.

    Args:
      settings: the settings of the run.
      step: the number of updates before this one, an integer scalar.
      total_steps: the number of updates of the whole run; None if it is not known.

    Returns:
      A float if the rate is constant, else a float32 scalar.

    Raises:
      UserError: the last step of a cosine is not known, or the warm-up is as long as the run.
    """
    warmup = settings.warmup_steps
    if total_steps is not None and warmup >= total_steps:
        raise UserError(
            f"--warmup_steps={warmup} is not less than the {total_steps} updates of the run; give "
            "fewer"
        )
    if settings.schedule == "constant" and not warmup:
        return settings.learning_rate
    before = tf.cast(tf.convert_to_tensor(step), tf.float32)
    factor = tf.minimum(1.0, (before + 1.0) / warmup) if warmup else tf.constant(1.0)
    if settings.schedule == "cosine":
        if total_steps is None:
            raise UserError(
                "--schedule=cosine falls to 0 at the last update, and the length of the stream is "
                "not known; give --max_steps"
            )
        passed = tf.clip_by_value((before - warmup) / (total_steps - warmup), 0.0, 1.0)
        factor *= 0.5 * (1.0 + tf.cos(math.pi * passed))
    return settings.learning_rate * factor
