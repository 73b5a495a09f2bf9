"""Synchronous replicas that look up rows of a table, each other ones.

This module imports nothing of ours, so that TensorFlow 1.15 alone can tell what the numbers have to
be:

    python replica_rows.py > golden_replica_rows.json
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import numpy as np

REPLICAS = 3
# Of each update the rows of each replica, once and in order: one is read by all, others by some.
UPDATES = [[[0, 1, 4], [1, 4], [2, 4]], [[3], [0, 1, 2, 3, 4], [3, 4]], [[1, 2], [1], [0]]]
OPTIMIZERS = {
    "adagrad": lambda train: train.AdagradOptimizer(0.5),
    "adam": lambda train: train.AdamOptimizer(0.5),
    "momentum": lambda train: train.MomentumOptimizer(0.5, 0.9),
}


def feeds(update: list[list[int]]) -> list[list[np.ndarray]]:
    """Returns what each replica is fed in an update: rows, and a factor for each of them."""
    return [
        [np.int64(rows), np.float32([1 + row + 8 * i for row in rows])]
        for i, rows in enumerate(update)
    ]


def step(tf1: Any, optimizer: Any, rows: Any, factors: Any, partitioner: Any = None) -> list[Any]:
    """Returns the training operation, the parts of a table, and a vector."""
    table = tf1.get_variable(
        "table",
        [5, 2],
        initializer=tf1.ones_initializer(),
        partitioner=partitioner,
        use_resource=True,
    )
    bias = tf1.get_variable("bias", [2], initializer=tf1.zeros_initializer(), use_resource=True)
    found = tf1.nn.embedding_lookup(table, rows, "div") * [1.0, -2.0]
    loss = tf1.reduce_sum((found + bias) * factors[:, None])
    variables = [*(table if partitioner else [table]), bias]
    pairs = zip(tf1.gradients(loss, variables), variables)
    train = optimizer.apply_gradients(pairs, tf1.train.get_or_create_global_step())
    return [train, *variables]


def run_all(run: Callable[..., Any], calls: list[Any]) -> None:
    """Makes the calls of all replicas in an update; each may wait for the others."""
    with ThreadPoolExecutor(REPLICAS) as pool:
        list(pool.map(lambda arguments: run(*arguments), calls))


def updated(tf1: Any, plain: Any) -> list[Any]:
    """Returns table and vector after each update that TensorFlow's own optimizer makes."""
    with tf1.Graph().as_default():
        rows, factors = tf1.placeholder(tf1.int64, [None]), tf1.placeholder(tf1.float32, [None])
        optimizer = tf1.train.SyncReplicasOptimizer(plain, REPLICAS, REPLICAS)
        train, *variables = step(tf1, optimizer, rows, factors)
        apply_all, seen = optimizer.get_chief_queue_runner(), []
        with tf1.Session() as session:  # A monitored one would wait for the queue runner.
            session.run(tf1.global_variables_initializer())
            session.run([tf1.local_variables_initializer(), optimizer.chief_init_op])
            apply_all.create_threads(session, tf1.train.Coordinator(), daemon=True, start=True)
            for update in UPDATES:
                calls = [dict(zip((rows, factors), call)) for call in feeds(update)]
                run_all(session.run, [(train, call) for call in calls])
                seen.append(
                    [np.round(np.float64(value), 6).tolist() for value in session.run(variables)]
                )
    return seen


def main() -> None:
    from tensorflow.compat import v1 as tf1

    print(json.dumps({name: updated(tf1, make(tf1.train)) for name, make in OPTIMIZERS.items()}))


if __name__ == "__main__":
    main()
