"""One update and one measurement: tensors in, scalars out, on either runtime."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import compat
import models
from compat import tf, tf1
from compat.runtime.packing import packed, unpacked


def optimizer(name: str, learning_rate: float) -> Any:
    """Returns the optimizer `name` of `experiments.settings.config.OPTIMIZERS`.

    They are those of `tf.compat.v1.train`: Keras 3 does not support parameter servers.
    """
    if name == "momentum":
        return tf1.train.MomentumOptimizer(learning_rate, momentum=0.9)
    if name == "adam":
        return tf1.train.AdamOptimizer(learning_rate)
    return tf1.train.GradientDescentOptimizer(learning_rate)


def pixels(images: Any) -> Any:
    """Flattens and scales images.

    Args:
      images: uint8 `[batch, 28, 28]`.

    Returns:
      float32 `[batch, 784]`, in [0, 1].
    """
    return tf.cast(tf.reshape(images, [-1, 28 * 28]), tf.float32) / 255.0


def train_step(
    model: Any, update: Any, global_step: Any, stale: bool = False, remote: bool = False
) -> Callable[..., Any]:
    """Returns the function that makes one update.

    Args:
      model: maps float32 `[batch, 784]` to logits `[batch, 10]`, see `models`.
      update: an optimizer of `tf.compat.v1.train`.
      global_step: counts the updates.
      stale: whether to tell how many updates of others came between reading the weights and
        updating them; costs one more read.
      remote: whether the weights are on parameter servers.

    Returns:
      A function of images uint8 `[examples, 28, 28]`, labels int32 `[examples]` and the batch's
      indices into them, int32 `[batch]`. It returns `cost`, in nats per example, and `accuracy`,
      in [0, 1], of the batch before the update, and `staleness`, in updates.
    """

    def step(images: Any, labels: Any, indices: Any) -> dict[str, Any]:
        seen = global_step.read_value() if stale else None
        truth = tf.gather(labels, indices)
        with tf.GradientTape() as tape:
            logits = model(pixels(tf.gather(images, indices)), training=True)
            cost = models.cross_entropy(logits, truth)
        weights = model.trainable_variables
        accuracy = models.accuracy(logits, truth)
        # The cost as well, so that all of the workers see at the same step that it is no number.
        *gradients, cost, accuracy = compat.average([*tape.gradient(cost, weights), cost, accuracy])
        if remote:
            gradients = in_one_message(gradients, weights)
        with tf.control_dependencies([seen] if stale else []):
            updated = update.apply_gradients(zip(gradients, weights), global_step=global_step)
        values = {"cost": cost, "accuracy": accuracy, "train": updated}
        if stale:
            with tf.control_dependencies([updated]):
                values["staleness"] = global_step.read_value() - seen - 1
        return values

    return step


def in_one_message(gradients: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    """Returns the gradients where their weights are, sent there as one tensor for each device.

    Args:
      gradients: float32, of the weights' shapes.
      weights: the variables, each on a device.
    """
    arrived = list(gradients)
    for device in sorted({weight.device for weight in weights}):
        here = [i for i, weight in enumerate(weights) if weight.device == device]
        flat = packed([gradients[i] for i in here])
        with tf.device(device):
            parts = unpacked(flat, [weights[i].shape for i in here])
        for i, part in zip(here, parts):
            arrived[i] = part
    return arrived


def evaluation_step(model: Any) -> Callable[..., Any]:
    """Returns the function that measures a model.

    Returns:
      A function of images uint8 `[batch, 28, 28]` and labels int32 `[batch]`. It returns `cost`,
      in nats per example, and `accuracy`, in [0, 1].
    """

    def step(images: Any, labels: Any) -> dict[str, Any]:
        logits = model(pixels(images))
        return {
            "cost": models.cross_entropy(logits, labels),
            "accuracy": models.accuracy(logits, labels),
        }

    return step
