"""Which operations of two tensors count as pairs of examples that nobody meant."""

from __future__ import annotations

import pytest

from compat import tf, tf1
from experiments.training.updates import broadcasts


def check(compute: str) -> None:
    with tf1.Graph().as_default() as graph:
        values = {
            "v": tf1.placeholder(tf.float32, [None]),
            "c": tf1.placeholder(tf.float32, [None, 1]),
            "w": tf1.placeholder(tf.float32, [5]),
        }
        eval(compute, {"tf": tf, **values})
        broadcasts.check(graph.get_operations())


@pytest.mark.parametrize(
    "compute", ["v - c", "c * v", "tf.cast(c, tf.float64) + tf.cast(v, 'double')"]
)
def test_pairs_are_an_error_of_the_operation(compute: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is \[batch, batch\]") as raised:
        check(compute)
    assert raised.value.op is not None


@pytest.mark.parametrize(
    "compute",
    [
        "v[:, None] - v",  # Somebody wrote that it is a column.
        "-2 * tf.expand_dims(v, 1) + v",
        "tf.reduce_sum(c * c, 1, keepdims=True) + v",
        "tf.reshape(v, [-1, 1]) * v",
        "tf.expand_dims(v, 0) - c",
        "c - c",
        "c * w",
        "tf.gather(v, tf.cast(c, tf.int32))",
        "tf.matmul(c, c, transpose_b=True)",
    ],
)
def test_what_is_meant_is_none(compute: str) -> None:
    check(compute)
