"""Steps whose graphs have queues of input, and an optimizer for synchronous replicas."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1
from compat.runtime import interface
from compat.runtime.program.replicas import SyncReplicas
from compat.scripts.shims import classes

if TYPE_CHECKING:
    from tests.compat.programs.cases import case, fresh, refusal
else:
    from cases import case, fresh, refusal

ROWS = runpy.run_path(str(Path(__file__).parents[2] / "conformance" / "replica_rows.py"))


@case
def queues_of_input(logdir: Path) -> Any:
    """Three rows in two epochs, in batches of two, each at the time when a step needs it."""

    def build(factor: Any) -> Any:
        rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        (row,) = tf1.train.slice_input_producer([rows], num_epochs=2, shuffle=False)
        batch = tf1.train.batch([row], 2)
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        update = weight.assign_add(factor * tf.reduce_sum(batch))
        return {"batch": batch, "weight": update, "half": factor / 2}

    with compat.device(None):
        built = compat.step(build, [tf.TensorSpec([], tf.float32, "factor")])
        half = built.select("half")
    supervisor, found = compat.Supervisor(), []
    with supervisor.managed_session() as session:
        for _ in range(3):
            values = session.run(built, 1.0)
            found.append([values["batch"].tolist(), values["weight"]])
        ended = refusal(lambda: session.run(built, 1.0), tf.errors.OutOfRangeError)
        found.append([session.run(half, 3.0)["half"], "insufficient elements" in ended])
    return found


@case
def synchronous_replicas(logdir: Path) -> Any:
    """Each two calls make an update with the mean of their gradients, on the modern runtime."""
    if interface.selected() == "legacy":
        return None
    found: list[Any] = []

    def build(x: Any) -> Any:
        step = compat.get_or_create_global_step()
        weight = tf1.get_variable("weight", [2], initializer=tf1.ones_initializer())
        weights.append(weight)
        plain = tf1.train.MomentumOptimizer(0.5, 0.0)
        optimizer = classes.SyncReplicasOptimizer(plain, 2, total_num_replicas=2)
        train = optimizer.minimize(tf.reduce_sum(x * weight), global_step=step)
        found.append(optimizer.get_chief_queue_runner())
        found.append(isinstance(optimizer.make_session_run_hook(True), tf1.train.SessionRunHook))
        tokens.append(optimizer.get_init_tokens_op())
        with tf.control_dependencies([train]):
            return {"train": train, "step": step.read_value(), "weight": weight.read_value()}

    tokens: list[Any] = []
    weights: list[Any] = []
    with compat.device(None):
        train = compat.step(build, [tf.TensorSpec([2], tf.float32, "x")])
        updates = [train, train.select("step", "train")]  # Of one graph, so of the same updates.
    with compat.Supervisor().managed_session() as session:
        found.append(session.run(tokens[0]))
        for i in range(5):
            values = session.run(updates[i % 2], np.float32([1, i]))
            weight = values.get("weight", session.run(weights[0]))
            found.append([int(values["step"]), weight.tolist()])
    return found


@case
def replicas_that_read_rows(logdir: Path) -> Any:
    """The updates of `replica_rows.py`, once as they are there, and once with rows in disorder."""
    return {
        "adam": updated_rows("adam", lambda rows, factors: [rows, factors]),
        "adagrad": updated_rows("adagrad", in_disorder),
    }


def in_disorder(rows: Any, factors: Any) -> Any:
    """Returns each row twice, the last one first, with factors of the same sums."""
    return [np.tile(rows[::-1], 2), np.concatenate([factors[::-1] / 4, factors[::-1] * 3 / 4])]


def updated_rows(name: str, change: Any) -> Any:
    """Returns table and vector after each update of an optimizer."""
    fresh()
    plain, count = ROWS["OPTIMIZERS"][name](tf1.train), ROWS["REPLICAS"]
    sync = SyncReplicas(plain, count, count, 0) if interface.selected() == "legacy" else None
    variables: list[Any] = []

    def build(rows: Any, factors: Any) -> Any:
        optimizer = sync or interface.current_runtime().replicated(plain, count)
        train, *found = ROWS["step"](tf1, optimizer, rows, factors)
        variables.extend(found)
        return {"train": train}

    with compat.device(None):
        specs = [tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.float32)]
        step, seen = compat.step(build, specs), []
    with compat.Supervisor(sync_optimizer=sync).managed_session() as session:
        for update in ROWS["UPDATES"]:
            calls = [change(*call) for call in ROWS["feeds"](update)]
            ROWS["run_all"](lambda *call: session.run(step, *call), calls)
            seen.append([value.tolist() for value in session.run(variables)])
    return seen
