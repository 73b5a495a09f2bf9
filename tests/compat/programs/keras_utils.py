"""Uses the names of `tf.compat.v1.keras.utils` beside Keras 3; prints what they did, by case."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compat import tf, tf1
from compat.scripts.shims import keras_utils

if TYPE_CHECKING:
    from tests.compat.programs.cases import case, refusal, run
else:
    from cases import case, refusal, run

os.environ["TF_USE_LEGACY_KERAS"] = "0"
keras_utils.install()
utils = tf.compat.v1.keras.utils
X = np.ones([8, 4], np.float32)


def weights(units: int) -> Any:
    with tf1.variable_scope("scope", reuse=tf1.AUTO_REUSE):
        ones, l2 = tf1.ones_initializer(), lambda w: tf.reduce_sum(tf.convert_to_tensor(w) ** 2)
        return tf1.get_variable("w", [4, units], initializer=ones, regularizer=l2)


class Module(tf.Module):
    """Multiplies by a variable, of which it has one, however often it is called."""

    @utils.track_tf1_style_variables
    def __call__(self, x: Any, units: int = 3) -> Any:
        tf1.get_variable("count", [], tf1.int32, trainable=False)
        return tf.matmul(x, weights(units))


@case
def tracks_a_module(folder: Path) -> Any:
    module = Module()
    results = [module(X), tf.function(lambda: module(X))()]
    names = [sorted(v.name for v in vs) for vs in (module.variables, module.trainable_variables)]
    (loss,) = module._tf1_style_var_store._regularizers.values()
    return [*names, float(loss()), [result.numpy().sum().item() for result in results]]


@case
def tracks_a_layer_of_keras_3(folder: Path) -> Any:
    """The losses of TensorFlow 2.15, which has Keras 2."""
    keras = tf.compat.v1.keras

    class Layer(keras.layers.Layer):
        @utils.track_tf1_style_variables
        def call(self, x: Any) -> Any:
            dense = utils.get_or_create_layer(
                "dense", lambda: keras.layers.Dense(2, kernel_initializer="ones")
            )
            return dense(tf.matmul(x, weights(3)))

    last = keras.layers.Dense(1, kernel_initializer="ones")
    model = keras.Sequential([Layer(), last])
    model.compile("sgd", "mse")
    history = model.fit(X, np.ones([8, 1]), epochs=3, batch_size=8, verbose=0).history
    return [[round(loss, 3) for loss in history["loss"]], len(model.trainable_weights)]


@case
def draws_alike(folder: Path) -> Any:
    found = []
    for mode in ("constant", "num_random_ops"):
        eager = utils.DeterministicRandomTestTool(mode=mode)
        with eager.scope():
            numbers = [draw().numpy() for draw in (_normal, _uniform)]
        graph = utils.DeterministicRandomTestTool(mode=mode)
        with graph.scope(), tf1.Graph().as_default(), tf1.Session() as session:
            same = session.run([_normal(), _uniform()])
        equal = [np.allclose(*pair) for pair in zip(numbers, same)]
        found.append(
            [*(np.round(n.astype(float), 4).tolist() for n in numbers), equal, eager.operation_seed]
        )
    return found


def _normal() -> Any:
    return tf.random.normal([2])


def _uniform() -> Any:
    return tf.random.uniform([2])


@case
def refuses(folder: Path) -> Any:
    tool = utils.DeterministicRandomTestTool(mode="num_random_ops")

    def again() -> None:
        with tool.scope():
            _normal()
            tool.operation_seed = 0
            _normal()

    module = Module()
    module(X)
    return [
        refusal(again),
        refusal(lambda: utils.DeterministicRandomTestTool(mode="all")),
        refusal(lambda: module(X, units=2)),
        refusal(lambda: utils.track_tf1_style_variables(lambda self: None)(3)),
        refusal(lambda: utils.get_or_create_layer("dense", dict)),
    ]


if __name__ == "__main__":
    run()
