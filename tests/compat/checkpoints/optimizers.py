"""Trains by TensorFlow 1.x's optimizers, converts, and trains on by those of Keras 3, and back.

Prints, for each optimizer, the losses of four more steps: of the old program, of Keras from its
weights, of Keras from an object-based checkpoint, and of the old program from Keras' weights.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

import numpy as np

from compat import __main__ as command_line
from compat import tf, tf1

keras: Any = importlib.import_module("keras")
X = np.random.RandomState(1).rand(12, 16, 8).astype(np.float32)
Y = np.random.RandomState(2).randint(0, 4, (12, 16))
OPTIMIZERS = {
    "adam": [lambda: tf1.train.AdamOptimizer(0.01), lambda o: o.Adam(0.01, epsilon=1e-8)],
    "adagrad": [lambda: tf1.train.AdagradOptimizer(0.1), lambda o: o.Adagrad(0.1, epsilon=0)],
    "adadelta": [
        lambda: tf1.train.AdadeltaOptimizer(1.0, 0.95, 1e-7),
        lambda o: o.Adadelta(1.0, 0.95),
    ],
    "ftrl": [lambda: tf1.train.FtrlOptimizer(0.1), lambda o: o.Ftrl(0.1)],
    "momentum": [lambda: tf1.train.MomentumOptimizer(0.1, 0.9), lambda o: o.SGD(0.1, 0.9)],
    "rmsprop": [
        lambda: tf1.train.RMSPropOptimizer(0.01, 0.9, epsilon=1e-7),
        lambda o: o.RMSprop(0.01, 0.9, epsilon=1e-7),
    ],
}


def old(make: Any, steps: int, start: str | None, folder: str) -> list[float]:
    """Trains the old program, from a checkpoint if it has one; returns the losses."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(3)
        x, y = tf1.placeholder(tf1.float32, [None, 8]), tf1.placeholder(tf1.int64, [None])
        hidden = tf1.nn.relu(_dense(x, "hidden", 8, 6))
        logits = _dense(hidden, "output", 6, 4)
        losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss, step = tf1.reduce_mean(losses), tf1.train.get_or_create_global_step()
        train = make().minimize(loss, global_step=step)
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver()
        if start:
            saver.restore(session, tf1.train.latest_checkpoint(start))
        at = int(session.run(step))
        feeds = [{x: X[number], y: Y[number]} for number in range(at, at + steps)]
        found = [float(session.run([loss, train], feed)[0]) for feed in feeds]
        saver.save(session, os.path.abspath(f"{folder}/model.ckpt"), global_step=step)
    return found


def _dense(x: Any, name: str, inputs: int, outputs: int) -> Any:
    with tf1.variable_scope(name):
        kernel = tf1.get_variable("kernel", [inputs, outputs])
        return tf1.matmul(x, kernel) + tf1.get_variable("bias", [outputs])


def new(make: Any) -> tuple[Any, Any]:
    """Returns the model of the new program, and its checkpoint."""
    layers = [keras.layers.Dense(6, "relu", name="hidden"), keras.layers.Dense(4, name="output")]
    model = keras.Sequential([keras.Input((8,)), *layers], name="model")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(make(keras.optimizers), loss)
    model.optimizer.build(model.trainable_variables)
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def trained(model: Any) -> list[float]:
    return [float(model.train_on_batch(X[number], Y[number])) for number in range(6, 10)]


def convert(*argv: str) -> None:
    assert command_line.main(["convert-checkpoint", *argv]) == 0


def compared(name: str, old_optimizer: Any, new_optimizer: Any) -> list[list[float]]:
    old(old_optimizer, 6, None, f"{name}-old")
    expected = old(old_optimizer, 4, f"{name}-old", f"{name}-more")
    weights, objects = f"{name}.weights.h5", f"{name}-objects"
    model, checkpoint = new(new_optimizer)
    model.save_weights(f"like-{weights}")
    checkpoint.save(f"{objects}/like")
    convert(f"{name}-old", weights, f"--like=like-{weights}")
    scopes = [f"--rename={layer}/*:model/{layer}/*" for layer in ("hidden", "output")]
    convert(f"{name}-old", f"{objects}-new", f"--like={objects}/like-1", *scopes)
    model.load_weights(weights)
    by_weights = trained(model)
    other, checkpoint = new(new_optimizer)
    checkpoint.restore(tf.train.latest_checkpoint(f"{objects}-new")).assert_consumed()
    # Keras' has no momentum that is not used; 1.x's has.
    unused = ["--fresh=*/RMSProp_1"] if name == "rmsprop" else []
    convert(weights, f"{name}-back", f"--like={name}-more", *unused)
    back = old(old_optimizer, 4, f"{name}-back", f"{name}-again")
    return [expected, by_weights, trained(other), back]


if __name__ == "__main__":
    found = {name: compared(name, *pair) for name, pair in OPTIMIZERS.items()}
    print(json.dumps(found))
