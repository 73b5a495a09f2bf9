"""Trains tables in two parts, with a map or without, and parses clicks; prints what it got."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import compat
from compat import tf, tf1
from experiments.datasets import clicks, criteo
from experiments.training.updates import optimizers
from models import embeddings, row_map

SIZES = [5, 4]
WIDTH = 3
UPDATES = 3
NAMES = ("adagrad", "ftrl", "lazy_adam", "rowwise_adagrad")


def train(name: str) -> dict[str, Any]:
    """Makes updates whose gradients are given; returns values, and what a table was before."""
    found: dict[str, Any] = {}

    def lookup(ids: Any) -> Any:
        with tf1.variable_scope(name, reuse=tf1.AUTO_REUSE):
            rows = embeddings.Rows(ids, SIZES)
            return rows.lookup(embeddings.table("table", rows.total, WIDTH, parts=2))

    def update(ids: Any, gradients: Any) -> dict[str, Any]:
        loss = tf.reduce_sum(lookup(ids) * gradients)
        variables = [v for v in tf1.trainable_variables() if v.name.startswith(name + "/")]
        changes = tf1.gradients(loss, variables)
        found["sparse"] = [isinstance(change, tf.IndexedSlices) for change in changes]
        sent = tf.add_n([tf.shape(change.indices)[0] for change in changes])
        done = optimizers.create(name, 0.1).apply_gradients(list(zip(changes, variables)))
        return {"sent": sent, "train": done}

    def read(ids: Any) -> dict[str, Any]:
        return {"found": lookup(ids)}

    with compat.device(None):
        signature = [tf.TensorSpec([4, 2], tf.int64), tf.TensorSpec([4, 2, WIDTH], tf.float32)]
        trained = compat.step(update, signature)
        every = compat.step(read, [tf.TensorSpec([5, 2], tf.int64)])
    random = np.random.RandomState(1)
    all_ids = np.stack([np.arange(5), np.minimum(np.arange(5), 3)], axis=1)
    found.update(ids=[], gradients=[], sent=[])
    with compat.Supervisor(logdir=None, summary_op=None).managed_session() as session:
        found["first"] = session.run(every, all_ids)["found"].tolist()
        for _ in range(UPDATES):
            ids = random.randint(0, 3, [4, 2]) + 5 * random.randint(0, 2, [4, 1]) * [1, 0]
            gradients = random.standard_normal([4, 2, WIDTH]).astype(np.float32)
            found["sent"].append(float(session.run(trained, ids, gradients)["sent"]))
            found["ids"].append(ids.tolist())
            found["gradients"].append(gradients.tolist())
        found["last"] = session.run(every, all_ids)["found"].tolist()
        slots = [v for v in runtime.variables() if v.startswith(name + "/") and "part_0/" in v]
        read_slots = session.read({slot: runtime.variables()[slot] for slot in slots})
    found["slots"] = {slot: list(value.shape) for slot, value in read_slots.items()}
    return found


def remember(batches: list[Any]) -> list[dict[str, Any]]:
    """Trains a table of sixteen rows, each of whose values is seen twice and forgotten after three.

    Returns for each batch of eight values which had rows before its update; after it the same and
    the embeddings, followed by those of two values that are never seen; the share of rows in use,
    and how many have Adagrad's first accumulators.
    """
    step = None

    def lookup(ids: Any) -> tuple[Any, Any]:
        with tf1.variable_scope("map", reuse=tf1.AUTO_REUSE):
            rows = row_map.MappedRows(ids, rows=16, parts=2)
            table = embeddings.table("table", rows.total, WIDTH, parts=2)
            return rows, rows.lookup(table)

    def update(ids: Any) -> dict[str, Any]:
        rows, found = lookup(ids)
        optimizer = tf1.train.AdagradOptimizer(0.1)
        variables = tf1.trainable_variables()
        changes = tf1.gradients(tf.reduce_sum(found**2), variables)
        done = optimizer.apply_gradients(list(zip(changes, variables)), global_step=step)
        with tf.control_dependencies([done]):
            kept = rows.remember(optimizer, step, admit_after=2, forget_after=3)
        return {"known": rows.known, "train": tf.group(done, kept)}

    def read(ids: Any) -> dict[str, Any]:
        rows, found = lookup(ids)
        return {"known": rows.known, "found": found, "used": rows.used()}

    with compat.device(None):
        step = compat.get_or_create_global_step()
        trained = compat.step(update, [tf.TensorSpec([4, 2], tf.int64)])
        every = compat.step(read, [tf.TensorSpec([5, 2], tf.int64)])
    found: list[dict[str, Any]] = []
    with compat.Supervisor(logdir=None, summary_op=None).managed_session() as session:
        slots = {k: v for k, v in runtime.variables().items() if k.endswith("/Adagrad")}
        for values in batches:
            ids = np.array(values, np.int64).reshape(4, 2)
            before = session.run(trained, ids)["known"]
            after = session.run(every, np.concatenate([ids, [[-1, -1]]]))
            sums = session.read(slots)
            fresh = sum(int((part == np.float32(0.1)).all(axis=1).sum()) for part in sums.values())
            arrays = {key: np.asarray(value).tolist() for key, value in after.items()}
            found.append({"before": before.tolist(), **arrays, "fresh": fresh})
    return found


def parse(folder: str) -> dict[str, Any]:
    """Writes files of clicks; returns what two workers read of one of them, and what was made."""
    law = clicks.Law(values=50)
    law.write(folder, {"train-0": 7, "train-1": 6})
    paths = criteo.files(folder, "train")

    def dataset(shard: Any) -> Any:
        return criteo.lines(*shard).batch(10).map(criteo.parse)

    def element(batch: Any) -> dict[str, Any]:
        kept = ("labels", "numbers", "categories")
        return {name: tf.identity(batch[name]) for name in kept}

    shards = [(paths, 0, 1), (paths, 1, 2), (paths[:1], 1, 2)]
    with compat.device(None):
        steps = [
            compat.step(element, [], dataset=lambda *_, shard=shard: dataset(shard))
            for shard in shards
        ]
    with compat.Supervisor(logdir=None, summary_op=None).managed_session() as session:
        found = [session.run(step) for step in steps]
    made = law.make(0, 7), law.make(1, 6)
    return {
        "labels": [values["labels"].tolist() for values in found],
        "numbers": found[1]["numbers"].tolist(),
        "categories": found[1]["categories"].tolist(),
        "made_labels": [one.labels.tolist() for one in made],
        "made_numbers": np.nan_to_num(made[1].numbers).tolist(),
        "made_values": made[1].values.tolist(),
    }


if __name__ == "__main__":
    runtime = compat.select_runtime(json.loads(sys.argv[1])["runtime"])
    report: dict[str, Any] = {}
    for optimizer in NAMES:
        report[optimizer] = train(optimizer)
        runtime.clear()
    report["mapped"] = remember([range(8 * i, 8 * i + 8) for i in (0, 1, 2, 0) for _ in range(12)])
    runtime.clear()
    report["parsed"] = parse(str(Path("clicks").resolve()))
    print(json.dumps(report))
