"""Rows of layers, recurrent networks and losses; see rows.py, which tells their numbers:

python rows.py layer_rows > golden_layer_rows.json
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

KERAS = "2.16 and later: from the package tf-keras"
_X = np.random.RandomState(0).standard_normal([4, 6]).astype(np.float32)
_IMAGES = np.random.RandomState(1).standard_normal([4, 6, 6, 1]).astype(np.float32)
_WORDS = np.random.RandomState(2).standard_normal([4, 5, 3]).astype(np.float32)
_LENGTHS = np.int32([5, 1, 3, 4])


def drawn(tf1: Any) -> Any:
    return tf1.glorot_uniform_initializer(seed=7)


def trained(tf1: Any, network: Callable[[Any], Any], *arrays: Any) -> Any:
    """Three updates of what a network makes of the arrays, towards 1."""

    def step(*inputs: Any) -> Any:
        inputs = [tf1.ensure_shape(x, array.shape) for x, array in zip(inputs, arrays)]
        with tf1.variable_scope("network", initializer=drawn(tf1)):
            loss = tf1.reduce_mean(tf1.square(network(*inputs) - 1.0))
        return {"loss": loss, "train": tf1.train.GradientDescentOptimizer(0.2).minimize(loss)}

    return step, [arrays] * 3


def dense(tf1: Any) -> Any:
    def network(x: Any) -> Any:
        hidden = tf1.layers.dense(x, 5, tf1.nn.relu)
        return tf1.layers.dense(tf1.layers.dropout(hidden, 0.5), 2)

    return trained(tf1, network, _X)


def convolution(tf1: Any) -> Any:
    def network(x: Any) -> Any:
        found = tf1.layers.conv2d(x, 3, [3, 3], padding="same", activation=tf1.nn.relu)
        found = tf1.layers.max_pooling2d(found, 2, 2)
        return tf1.layers.dense(tf1.layers.flatten(found), 2)

    return trained(tf1, network, _IMAGES)


def normalization(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        with tf1.variable_scope("normalized"):
            x = tf1.ensure_shape(x, _X.shape)
            found = tf1.layers.batch_normalization(x, momentum=0.5, training=True, name="layer")
            scope = tf1.get_variable_scope().name
        loss = tf1.reduce_mean(tf1.square(found - x))
        updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS, scope=scope)
        with tf1.control_dependencies(updates):
            train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        (mean,) = [v for v in tf1.global_variables(scope) if "moving_mean" in v.name]
        with tf1.control_dependencies(updates):
            return {"mean": tf1.reduce_sum(mean.read_value()), "train": train}

    return step, [(_X,), (2 * _X,), (_X,)]


def recurrent(cell: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def row(tf1: Any) -> Any:
        def network(x: Any, lengths: Any) -> Any:
            outputs, _ = tf1.nn.dynamic_rnn(cell(tf1), x, lengths, dtype=tf1.float32)
            return outputs

        return trained(tf1, network, _WORDS, _LENGTHS)

    return row


def both_directions(tf1: Any) -> Any:
    def network(x: Any, lengths: Any) -> Any:
        cells = [tf1.nn.rnn_cell.GRUCell(2) for _ in range(2)]
        outputs, _ = tf1.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf1.float32)
        return outputs[0] + outputs[1]

    return trained(tf1, network, _WORDS, _LENGTHS)


def unrolled(tf1: Any) -> Any:
    def network(x: Any) -> Any:
        inputs = tf1.unstack(x, axis=1)
        return tf1.nn.static_rnn(tf1.nn.rnn_cell.BasicRNNCell(2), inputs, dtype=tf1.float32)[0][-1]

    return trained(tf1, network, _WORDS)


def total_loss(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        x = tf1.ensure_shape(x, _X.shape)
        with tf1.variable_scope("losses", regularizer=lambda w: 0.1 * tf1.reduce_sum(w * w)):
            w = tf1.get_variable("w", [6, 3], initializer=drawn(tf1))
            scope = tf1.get_variable_scope().name
        logits = tf1.matmul(x, w)
        labels, key = [0, 1, 2, 0], f"{scope}_losses"
        tf1.losses.sparse_softmax_cross_entropy(labels, logits, loss_collection=key)
        tf1.losses.huber_loss(tf1.one_hot(labels, 3), logits, weights=0.5, loss_collection=key)
        losses = tf1.get_collection(key) + tf1.losses.get_regularization_losses(scope)
        loss = tf1.add_n(losses)
        return {"loss": loss, "train": tf1.train.GradientDescentOptimizer(0.2).minimize(loss)}

    return step, [(_X,)] * 3


def two_optimizers(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        one = tf1.get_variable("one", initializer=np.float32(1))
        other = tf1.get_variable("other", initializer=np.float32(2))
        loss = tf1.square(one * x - 3) + tf1.square(other * x - 4)
        trains = [
            tf1.train.AdamOptimizer(rate, beta1=beta1).minimize(loss, var_list=[w])
            for rate, beta1, w in ((0.1, 0.5, one), (0.2, 0.9, other))
        ]
        return {"loss": loss, "train": tf1.group(*trains)}

    return step, [(np.float32(k),) for k in (1, 2, 1, 3)]


ROWS: dict[str, Callable[[Any], Any]] = {
    "tf.layers.dense": dense,
    "tf.layers.conv2d": convolution,
    "tf.layers.batch_normalization": normalization,
    "tf.nn.dynamic_rnn": recurrent(lambda tf1: tf1.nn.rnn_cell.LSTMCell(4, num_proj=2)),
    "tf.nn.rnn_cell.MultiRNNCell": recurrent(
        lambda tf1: tf1.nn.rnn_cell.MultiRNNCell(
            [tf1.nn.rnn_cell.BasicLSTMCell(3), tf1.nn.rnn_cell.GRUCell(2)]
        )
    ),
    "tf.nn.bidirectional_dynamic_rnn": both_directions,
    "tf.nn.static_rnn": unrolled,
    "tf.losses": total_loss,
    "two optimizers of one name": two_optimizers,
}
SECTIONS = {"Layers and losses": list(ROWS)}
DIFFERENCES = dict.fromkeys(list(ROWS)[:7], KERAS)
