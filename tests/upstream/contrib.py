"""The few layers and losses of `tf.contrib` that the tests of slim's training loop need."""

from __future__ import annotations

from typing import Any, Callable

from compat import tf1

CONTRIB = "tensorflow.contrib."


def fully_connected(inputs: Any, count: int, activation_fn: Callable[[Any], Any]) -> Any:
    with tf1.variable_scope(None, "fully_connected"):
        first = tf1.glorot_uniform_initializer()
        weights = tf1.get_variable("weights", [inputs.shape[-1], count], initializer=first)
        biases = tf1.get_variable("biases", [count], initializer=tf1.zeros_initializer())
    return activation_fn(tf1.matmul(tf1.cast(inputs, tf1.float32), weights) + biases)


def batch_norm(inputs: Any, decay: float, fused: bool) -> Any:
    del fused
    size = inputs.shape[-1:]
    firsts = {"moving_mean": tf1.zeros_initializer(), "moving_variance": tf1.ones_initializer()}
    with tf1.variable_scope(None, "BatchNorm"):
        beta = tf1.get_variable("beta", size, initializer=tf1.zeros_initializer())
        moving = [
            tf1.get_variable(name, size, initializer=first, trainable=False)
            for name, first in firsts.items()
        ]
    mean, variance = tf1.nn.moments(inputs, [0])
    for variable, value in zip(moving, (mean, variance)):
        update = variable.assign(variable * decay + value * (1 - decay))
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    return tf1.nn.batch_normalization(inputs, mean, variance, beta, None, 1e-3)


def assign_from_checkpoint(path: str, variables: Any) -> Any:
    reader = tf1.train.load_checkpoint(path)
    if not isinstance(variables, dict):
        variables = {variable.op.name: variable for variable in variables}
    feed, assigns = {}, []
    for name, variable in variables.items():
        value = tf1.placeholder(variable.dtype.base_dtype, variable.shape)
        feed[value] = reader.get_tensor(name)
        assigns.append(variable.assign(value))
    return tf1.group(*assigns), feed


def assign_from_checkpoint_fn(path: str, variables: dict[str, Any]) -> Callable[[Any], None]:
    saver = tf1.train.Saver(variables)
    return lambda session: saver.restore(session, path)


def get_variables_by_name(name: str) -> list[Any]:
    return [v for v in tf1.global_variables() if v.op.name.split("/")[-1] == name]


def local_variable(value: Any) -> Any:
    return tf1.Variable(value, trainable=False, collections=[tf1.GraphKeys.LOCAL_VARIABLES])


MODULES: dict[str, dict[str, Any]] = {
    CONTRIB + "layers.python.layers.layers": {
        "fully_connected": fully_connected,
        "batch_norm": batch_norm,
    },
    CONTRIB + "losses.python.losses.loss_ops": {
        "log_loss": lambda predictions, labels: tf1.losses.log_loss(labels, predictions),
        "get_total_loss": tf1.losses.get_total_loss,
    },
    CONTRIB + "framework.python.ops.variables": {
        "assign_from_checkpoint": assign_from_checkpoint,
        "assign_from_checkpoint_fn": assign_from_checkpoint_fn,
        "get_or_create_global_step": tf1.train.get_or_create_global_step,
        "get_variables": tf1.trainable_variables,
        "get_variables_by_name": get_variables_by_name,
        "local_variable": local_variable,
    },
}
