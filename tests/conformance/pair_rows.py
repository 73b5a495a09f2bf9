"""Names of the old API whose numbers do not depend on how the updates of two workers interleave.

Each update changes a weight as a whole (`use_locking`, `assign_add`) and in the same way, whatever
the other worker has done: what is left in the end depends on how many there were. A row is a
function of `tf1` and of an input, which is 1 in each call; it returns the update. This module
imports nothing of ours, so that TensorFlow 1.15 alone can tell what the numbers have to be:

    python pair_rows.py > golden_pair_rows.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any, Callable

import numpy as np

Row = Callable[[Any, Any], Any]
ROWS: dict[str, Row] = {}
WORKERS = 2
CALLS = 10  # By each worker; on the modern runtime the chief makes all.
STEPS = 10  # Of the session with hooks, which resumes.
FIRST = 100.0  # What `init_fn` assigns, which is more than there can be without it.
INIT_FN, STEPPED = "tf.train.Supervisor.init_fn", "tf.train.GradientDescentOptimizer"
PYTHON = "tf.py_func"


def row(name: str) -> Callable[[Row], Row]:
    """Registers a row under the old name that it shows."""
    return lambda function: ROWS.setdefault(name, function)


def weight(tf1: Any, **arguments: Any) -> Any:
    """Makes the weight of a row, float32 `[2]` unless the arguments say otherwise."""
    first = {} if "shape" in arguments else {"initializer": np.float32([1, 2])}
    return tf1.get_variable("w", use_resource=True, **first, **arguments)


def train(tf1: Any, loss: Any, optimizer: Any, change: Callable[[Any], Any] = list) -> Any:
    """Returns an update by an optimizer, which also counts; `change` is given the gradients."""
    pairs = change(optimizer.compute_gradients(loss))
    return optimizer.apply_gradients(pairs, tf1.train.get_or_create_global_step())


def _optimizer(name: str, *args: Any, **kwargs: Any) -> None:
    @row(f"tf.train.{name}")
    def optimizer(tf1: Any, x: Any) -> Any:
        chosen = getattr(tf1.train, name)(*args, use_locking=True, **kwargs)
        return train(tf1, tf1.reduce_sum(weight(tf1) * [0.5, -1.0]) * x, chosen)


_optimizer("GradientDescentOptimizer", 0.125)
_optimizer("MomentumOptimizer", 0.125, 0.5)
_optimizer("AdagradOptimizer", 0.1)
_optimizer("AdadeltaOptimizer", 1.0)
_optimizer("RMSPropOptimizer", 0.01)
_optimizer("FtrlOptimizer", 0.1)
_optimizer("ProximalAdagradOptimizer", 0.1)


@row("tf.clip_by_global_norm")
def clipping(tf1: Any, x: Any) -> Any:
    def clip(pairs: Any) -> Any:
        gradients, variables = zip(*pairs)
        return list(zip(tf1.clip_by_global_norm(gradients, 1.0)[0], variables))

    optimizer = tf1.train.GradientDescentOptimizer(0.1, use_locking=True)
    return train(tf1, tf1.reduce_sum(weight(tf1) * [3.0, -4.0]) * x, optimizer, clip)


@row("tf.get_variable with a regularizer")
def regularizer(tf1: Any, x: Any) -> Any:
    w = weight(tf1, regularizer=lambda v: 0.5 * tf1.reduce_sum(v))
    loss = tf1.reduce_sum(w * x) + tf1.losses.get_regularization_loss()
    return train(tf1, loss, tf1.train.GradientDescentOptimizer(0.1, use_locking=True))


def _partitioner(name: str, *args: Any, **kwargs: Any) -> None:
    @row(f"tf.{name}")
    def partitioned(tf1: Any, x: Any) -> Any:
        parts = getattr(tf1, name)(*args, **kwargs)
        w = weight(tf1, shape=[6, 2], initializer=tf1.ones_initializer(), partitioner=parts)
        loss = tf1.reduce_sum(tf1.convert_to_tensor(w) * x)
        return train(tf1, loss, tf1.train.GradientDescentOptimizer(0.125, use_locking=True))


_partitioner("fixed_size_partitioner", 3)
_partitioner("min_max_variable_partitioner", max_partitions=2, min_slice_size=8)
_partitioner("variable_axis_size_partitioner", 16)


@row("tf.nn.embedding_lookup_sparse")
def embedding_sparse(tf1: Any, x: Any) -> Any:
    table = weight(tf1, shape=[4, 2], initializer=tf1.ones_initializer())
    ids = tf1.SparseTensor([[0, 0], [0, 1], [1, 0]], np.int64([0, 1, 3]), [2, 2])
    found = tf1.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    optimizer = tf1.train.AdagradOptimizer(0.1, use_locking=True)
    return train(tf1, tf1.reduce_sum(found) * x, optimizer)


@row("tf.cond")
def cond(tf1: Any, x: Any) -> Any:
    w = weight(tf1)
    return tf1.cond(x > 0, lambda: w.assign_add([x, x]), lambda: w.assign([x, x]))


@row("tf.while_loop")
def loop(tf1: Any, x: Any) -> Any:
    w = weight(tf1)

    def body(i: Any) -> Any:
        with tf1.control_dependencies([w.assign_add([x, 2 * x])]):
            return i + 1

    return tf1.while_loop(lambda i: i < 3, body, [0])


@row("tf.control_dependencies on an input")
def dependencies(tf1: Any, x: Any) -> Any:
    w = weight(tf1)
    with tf1.control_dependencies([x]):
        return w.assign_add([1.0, 2.0])


@row(PYTHON)
def py_func(tf1: Any, x: Any) -> Any:
    doubled = tf1.py_func(lambda a: a * np.float32([2, 3]), [x], tf1.float32)
    return weight(tf1).assign_add(tf1.reshape(doubled, [2]))


@row("tf.Session.run(..., feed_dict)")
def feed_dict(tf1: Any, x: Any) -> Any:
    return weight(tf1).assign_add([x, 4 * x])


@row("tf.contrib.lookup.HashTable")
def lookup(tf1: Any, x: Any) -> Any:
    keys, values = tf1.constant(["a", "b"]), tf1.constant(np.int64([1, 2]))
    table = tf1.lookup.StaticHashTable(tf1.lookup.KeyValueTensorInitializer(keys, values), -1)
    found = tf1.cast(table.lookup(tf1.constant(["b", "c"])), tf1.float32)
    return weight(tf1).assign_add(found * x)


@row(INIT_FN)
def init_fn(tf1: Any, x: Any) -> Any:
    return weight(tf1).assign_add([x, x])


def scope(name: str) -> str:
    """Returns the variable scope of a row."""
    return f"row{list(ROWS).index(name)}"


# Of the page: the rows, and what test_pairs.py sees of a supervisor, a saver and hooks.
NAMES = [
    *ROWS,
    "tf.train.Supervisor",
    "tf.train.Supervisor.save_path",
    "tf.train.Saver",
    "tf.train.latest_checkpoint",
    "tf.train.MonitoredTrainingSession",
    "tf.train.SessionRunHook",
    "tf.train.StopAtStepHook",
    "tf.train.CheckpointSaverHook",
    "tf.train.SummarySaverHook",
    "tf.summary.scalar",
]


def saved(tf1: Any, prefix: str) -> dict[str, list[float]]:
    """Returns the weights in a checkpoint by the names of rows, and the global step."""
    reader = tf1.train.load_checkpoint(prefix)
    found = {
        name: np.ravel(reader.get_tensor(scope(name) + "/w")).tolist()
        for name in ROWS
        if reader.has_tensor(scope(name) + "/w")
    }
    return {**found, "tf.train.Supervisor": [float(reader.get_tensor("global_step"))]}


def native() -> dict[str, list[float]]:
    """Returns what is left after the calls of all workers, by TensorFlow alone."""
    import tensorflow

    tf1 = tensorflow.compat.v1
    with tf1.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf1.float32, [])
        tf1.train.get_or_create_global_step()
        updates = []
        for name, build in ROWS.items():
            with tf1.variable_scope(scope(name)):
                updates.append(build(tf1, x))
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        (first,) = (v for v in tf1.trainable_variables() if v.op.name == scope(INIT_FN) + "/w")
        first.load(np.float32([FIRST, FIRST]), session)
        for update in updates:
            for _ in range(WORKERS * CALLS):
                session.run(update, {x: 1})
        with tempfile.TemporaryDirectory() as folder:
            return saved(tf1, tf1.train.Saver().save(session, folder + "/model"))


if __name__ == "__main__":
    json.dump(native(), sys.stdout, indent=1)
