"""One small program for each name of the old API: what it computes, call by call.

A row is a function of `tf1`, be it `tensorflow.compat.v1` itself or that of `compat`. It returns a
function that builds the row's part of the graph, and the arrays that each call feeds. This module
imports nothing of ours, so that TensorFlow 1.15 alone can tell what the numbers have to be:

    python rows.py > golden_rows.json

layer_rows.py has more.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from typing import Any, Callable

import numpy as np

Row = Callable[[Any], Any]
ROWS: dict[str, Row] = {}
SECTIONS: dict[str, list[str]] = {}
DIFFERENCES = {
    "tf.py_func": "modern: a `compat.step` that other workers run does not call Python",
}
BATCHES = [(np.float32([[1, 2], [3, 4]]) * k, np.float32([1, -1])) for k in (1.0, 0.5, 0.25, 0.125)]


def row(section: str, name: str) -> Callable[[Row], Row]:
    """Registers a row under the old name that it shows."""

    def register(function: Row) -> Row:
        ROWS[name] = function
        SECTIONS.setdefault(section, []).append(name)
        return function

    return register


def regression(tf1: Any, optimizer: Any, change: Callable[[Any], Any] = list) -> Any:
    """A linear model of two weights and four calls; `change` is given gradients and variables."""

    def step(x: Any, y: Any) -> Any:
        global_step = tf1.train.get_or_create_global_step()
        w = tf1.get_variable("w", shape=[2], initializer=tf1.constant_initializer([1.0, 2.0]))
        loss = tf1.reduce_mean(tf1.square(tf1.tensordot(x, tf1.convert_to_tensor(w), 1) - y))
        chosen = optimizer(global_step) if callable(optimizer) else optimizer
        pairs = change(chosen.compute_gradients(loss))
        train = chosen.apply_gradients(pairs, global_step=global_step)
        return {"loss": loss, "train": train}

    return step, BATCHES


# The first of all, for its global step to begin at 0.
@row("Optimizers", "tf.train.exponential_decay")
def decay(tf1: Any) -> Any:
    def optimizer(global_step: Any) -> Any:
        return tf1.train.GradientDescentOptimizer(
            tf1.train.exponential_decay(0.05, global_step, 1, 0.5)
        )

    return regression(tf1, optimizer)


def _optimizer(name: str, *args: Any, **kwargs: Any) -> None:
    @row("Optimizers", f"tf.train.{name}")
    def optimizer(tf1: Any) -> Any:
        return regression(tf1, getattr(tf1.train, name)(*args, **kwargs))


_optimizer("GradientDescentOptimizer", 0.01)
_optimizer("MomentumOptimizer", 0.01, 0.9)
_optimizer("AdamOptimizer", 0.1)
_optimizer("AdagradOptimizer", 0.1)
_optimizer("AdadeltaOptimizer", 1.0)
_optimizer("RMSPropOptimizer", 0.01)
_optimizer("FtrlOptimizer", 0.1)
_optimizer("ProximalAdagradOptimizer", 0.1)


@row("Optimizers", "tf.clip_by_global_norm")
def clipping(tf1: Any) -> Any:
    def clip(pairs: Any) -> Any:
        gradients, variables = zip(*pairs)
        return list(zip(tf1.clip_by_global_norm(gradients, 1.0)[0], variables))

    return regression(tf1, tf1.train.GradientDescentOptimizer(0.1), change=clip)


@row("Optimizers", "tf.train.ExponentialMovingAverage")
def moving_average(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        w = tf1.get_variable("w", initializer=np.float32(1))
        average = tf1.train.ExponentialMovingAverage(0.5)
        with tf1.control_dependencies([w.assign_add(x)]):
            kept = average.apply([w])
        with tf1.control_dependencies([kept]):
            return {"average": average.average(w).read_value()}

    return step, [(np.float32(k),) for k in (1, 2, 3, 4)]


@row("Optimizers", "tf.train.ExponentialMovingAverage of a tensor")
def average_of_a_tensor(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        loss = tf1.square(x, name="loss")
        averages = [tf1.train.ExponentialMovingAverage(0.9, zero_debias=z) for z in (False, True)]
        with tf1.control_dependencies([each.apply([loss]) for each in averages]):
            return {"average": tf1.add_n([each.average(loss).read_value() for each in averages])}

    return step, [(np.float32(k),) for k in (1, 2, 3, 4)]


@row("Variables", "tf.get_variable with a regularizer")
def regularizer(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        w = tf1.get_variable(
            "w",
            initializer=np.float32([1, 2]),
            regularizer=lambda v: 0.1 * tf1.reduce_sum(tf1.square(v)),
        )
        loss = tf1.reduce_sum(w * x) + tf1.losses.get_regularization_loss()
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        return {"loss": loss, "train": train}

    return step, [(np.float32([1, k]),) for k in (1, 2, 3)]


def _partitioner(name: str, *args: Any, **kwargs: Any) -> None:
    @row("Variables", f"tf.{name}")
    def partitioned(tf1: Any) -> Any:
        def step(rows: Any) -> Any:
            table = tf1.get_variable(
                "table",
                shape=[6, 2],
                initializer=tf1.ones_initializer(),
                partitioner=getattr(tf1, name)(*args, **kwargs),
            )
            found = tf1.nn.embedding_lookup(table, rows, partition_strategy="div")
            loss = tf1.reduce_sum(tf1.square(found))
            train = tf1.train.AdamOptimizer(0.1).minimize(loss)
            return {"loss": loss, "train": train}

        return step, [(np.int32([0, 5]),), (np.int32([2, 3]),), (np.int32([0, 0]),)]


_partitioner("fixed_size_partitioner", 3)
_partitioner("min_max_variable_partitioner", max_partitions=2, min_slice_size=8)
_partitioner("variable_axis_size_partitioner", 16)


@row("Variables", "tf.nn.embedding_lookup_sparse")
def embedding_sparse(tf1: Any) -> Any:
    def step(indices: Any, values: Any) -> Any:
        table = tf1.get_variable("table", initializer=np.arange(8, dtype=np.float32).reshape(4, 2))
        ids = tf1.SparseTensor(indices, values, [2, 2])
        found = tf1.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
        loss = tf1.reduce_sum(tf1.square(found))
        train = tf1.train.AdagradOptimizer(0.1).minimize(loss)
        return {"loss": loss, "train": train}

    calls = [([[0, 0], [0, 1], [1, 0]], [0, 1, 3]), ([[0, 0], [1, 0], [1, 1]], [2, 2, 1])]
    return step, [(np.int64(indices), np.int64(values)) for indices, values in calls]


@row("Variables", "tf.scatter_add")
def scatter(tf1: Any) -> Any:
    def step(rows: Any) -> Any:
        table = tf1.get_variable("table", initializer=np.float32([1, 2, 3]), use_resource=True)
        with tf1.control_dependencies([tf1.scatter_add(table, rows, [1.0, 1.0])]):
            return {"sum": tf1.reduce_sum(table.read_value() * [1.0, 10.0, 100.0])}

    return step, [(np.int32([0, 2]),), (np.int32([1, 1]),)]


def _metric(name: str, *pairs: Any) -> None:
    @row("Metrics", f"tf.metrics.{name}")
    def metric(tf1: Any) -> Any:
        def step(*arrays: Any) -> Any:
            _, update = getattr(tf1.metrics, name)(*arrays)
            return {"value": update}

        return step, [tuple(np.float32(array) for array in pair) for pair in pairs]


_metric("mean", ([1, 2],), ([6],))
_metric("accuracy", ([1, 0], [1, 1]), ([1, 1], [1, 1]))
_metric("auc", ([0, 1], [0.1, 0.9]), ([1, 0], [0.2, 0.7]))
_metric("precision", ([1, 0], [1, 1]), ([1, 1], [1, 1]))


@row("Control flow", "tf.cond")
def cond(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        w = tf1.get_variable("w", initializer=np.float32(1), use_resource=True)
        changed = tf1.cond(x > 0, lambda: w.assign_add(x), lambda: w.assign(-x))
        with tf1.control_dependencies([changed]):
            return {"w": w.read_value()}

    return step, [(np.float32(k),) for k in (3, -2, 5)]


@row("Control flow", "tf.while_loop")
def loop(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        w = tf1.get_variable("w", initializer=np.float32(2), use_resource=True)
        power = tf1.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * w), (0, x))[1]
        train = tf1.train.GradientDescentOptimizer(0.01).minimize(power)
        return {"power": power, "train": train}

    return step, [(np.float32(1),), (np.float32(2),)]


@row("Control flow", "tf.control_dependencies on an input")
def dependencies(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        w = tf1.get_variable("w", initializer=np.float32(1), use_resource=True)
        with tf1.control_dependencies([x]):
            return {"w": w.assign_add(1.0)}

    return step, [(np.float32(0),), (np.float32(0),)]


@row("Input", "tf.py_func")
def py_func(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        return {"doubled": tf1.py_func(lambda a: a * np.float32(2), [x], tf1.float32)}

    return step, [(np.float32(1),), (np.float32(4),)]


@row("Input", "tf.Session.run(..., feed_dict)")
def feed_dict(tf1: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        return {"sum": x + 10.0 * y}

    return step, [{"y": np.float32(k), "x": np.float32(1)} for k in (2, 3)]


@row("Input", "tf.data.Dataset.make_one_shot_iterator in a step")
def one_shot(tf1: Any) -> Any:
    def step(x: Any) -> Any:
        data = tf1.data.Dataset.from_tensor_slices(np.float32([1, 2, 3]))
        return {"sum": x + tf1.data.make_one_shot_iterator(data).get_next()}

    return step, [(np.float32(10),)] * 3


@row("Input", "tf.contrib.lookup.HashTable")
def lookup(tf1: Any) -> Any:
    def step(words: Any) -> Any:
        keys, values = ["a", "b"], np.int64([1, 2])
        table = tf1.lookup.StaticHashTable(
            tf1.lookup.KeyValueTensorInitializer(tf1.constant(keys), tf1.constant(values)), -1
        )
        return {"sum": tf1.reduce_sum(table.lookup(words))}

    return step, [(np.array([b"a", b"b"]),), (np.array([b"b", b"c"]),)]


class Built:
    """The part of the graph of one row, with its placeholders.

    Args:
      calls: the arrays of each call: in order, or by the names of the arguments.
    """

    def __init__(self, tf1: Any, function: Any, calls: Any) -> None:
        by_name = isinstance(calls[0], dict)
        names = list(inspect.signature(function).parameters) if by_name else range(len(calls[0]))
        self._inputs = {name: _placeholder(tf1, calls[0][name]) for name in names}
        self._calls = calls
        self._values = function(*self._inputs.values())

    def run(self, session: Any) -> list[float]:
        """Returns the first value of each call."""
        found = []
        for arrays in self._calls:
            feed = {placeholder: arrays[name] for name, placeholder in self._inputs.items()}
            found.append(float(session.run(self._values, feed)[next(iter(self._values))]))
        return found


def _placeholder(tf1: Any, array: Any) -> Any:
    array = np.asarray(array)
    dtype = tf1.string if array.dtype.kind == "S" else array.dtype
    return tf1.placeholder(dtype, [None] * array.ndim)


def observe(
    api: Any, tf1: Any, folder: str, device: Any = None, master: str = ""
) -> dict[str, list[float]]:
    """Runs all rows in one session; returns the first value of each call, by name.

    Args:
      api: has the supervisor, be it `tf.compat.v1.train` or `compat`.
      folder: is not used here.
      device: where the variables live.
      master: the server of a task of a cluster, or "".
    """
    del folder
    tf1.train.get_or_create_global_step()
    rows = {**ROWS, **importlib.import_module("layer_rows").ROWS}
    built = {}
    for index, (name, row) in enumerate(rows.items()):
        with tf1.device(device), tf1.variable_scope(f"row{index}"):
            built[name] = Built(tf1, *row(tf1))
    with api.Supervisor(saver=None).managed_session(master) as session:
        return {name: each.run(session) for name, each in built.items()}


def native() -> dict[str, list[float]]:
    """Returns what TensorFlow alone does: graph and session."""
    import tensorflow

    tf1 = tensorflow.compat.v1
    with tf1.Graph().as_default():
        return observe(tf1.train, tf1, "")


if __name__ == "__main__":
    wanted = importlib.import_module(sys.argv[1]).ROWS if sys.argv[1:] else ROWS
    json.dump({k: v for k, v in native().items() if k in wanted}, sys.stdout, indent=1)
