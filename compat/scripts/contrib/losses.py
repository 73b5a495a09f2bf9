"""The losses of `tf.contrib.nn`: those of `tf.nn` with the order of arguments until 0.12."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Any:
    """Returns the loss of each row, in nats."""
    return tf1.nn.softmax_cross_entropy_with_logits(
        labels=labels, logits=logits, dim=dim, name=name
    )


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Any:
    """Returns the loss of each row, in nats; labels are integers."""
    return tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Any:
    """Returns the loss of each element, in nats."""
    return tf1.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)
