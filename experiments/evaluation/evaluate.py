"""Measuring a model on a split that is too large for one batch."""

from __future__ import annotations

import numpy as np

from compat import Session, Step
from compat.datasets import Split

CHUNK = 1000  # Images in a call: some 120 MB of feature maps for the convolutional network.


def evaluate(session: Session, step: Step, split: Split) -> dict[str, float]:
    """Returns `cost`, in nats per example, `accuracy`, in [0, 1], and `global_step`.

    The values are means over all examples of the split. While other workers train, they update
    the weights meanwhile; `global_step` is that of the last chunk.

    Args:
      session: where the model lives.
      step: made of `experiments.training.step.evaluation_step`.
      split: the images and labels to measure on.
    """
    sums = {"cost": 0.0, "accuracy": 0.0}
    for start in range(0, len(split.labels), CHUNK):
        images, labels = split.images[start : start + CHUNK], split.labels[start : start + CHUNK]
        values = session.run(step, images, labels.astype(np.int32))
        for name in sums:
            sums[name] += values[name] * len(labels)
    means = {name: total / len(split.labels) for name, total in sums.items()}
    return dict(means, global_step=values["global_step"])
