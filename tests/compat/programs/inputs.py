"""Steps that take the elements of a dataset, and carry local variables; alone or in a cluster.

Worker `w` has the elements 100 * w, 100 * w + 1, ...: four of them, and two more for each w.
Prints what the steps returned and what they left in the variables.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import compat
from compat import tf, tf1


def elements(worker: int, workers: int) -> Any:
    """Returns a dataset whose elements have a scalar, a sparse and a ragged part."""
    del workers
    first = 100 * worker

    def element(x: Any) -> Any:
        row = tf.SparseTensor([[0, 1]], [x], [1, 3])
        return {"x": x, "parts": (row, tf.RaggedTensor.from_row_lengths([x, x, x], [1, 2]))}

    return tf.data.Dataset.range(first, first + 4 + 2 * worker).map(element)


def main(settings: dict[str, Any]) -> None:  # noqa: C901
    compat.select_runtime(settings["runtime"])
    server = None
    if "cluster" in settings:
        server = compat.Server(settings["cluster"], settings["job"], settings["index"])
        if server.serves:
            server.join()
            return
    setter = server and compat.replica_device_setter(
        worker_device=server.task.name, cluster=server.cluster
    )
    with compat.device(setter):
        global_step = compat.get_or_create_global_step()
        total = tf.Variable(np.int64(0), name="total", trainable=False)

        def add(element: Any, factor: Any, number: Any) -> Any:
            """Adds the element, of which the sparse and the ragged part have three copies."""
            with tf1.device(server.task.name if server else None):
                seen = tf1.get_local_variable(
                    "seen", [], tf.int64, initializer=tf1.zeros_initializer()
                )
            mean, update = tf1.metrics.mean(tf.cast(element["x"], tf.float32))
            row, ragged = element["parts"]
            copies = tf.reduce_sum(tf.sparse.to_dense(row)) + tf.reduce_sum(ragged.values)
            with tf.control_dependencies([update, number]):
                carried = tf1.assign_add(seen, number)
            with tf.control_dependencies([carried]):
                added = total.assign_add(copies * factor, read_value=False)
                counted = global_step.assign_add(1, read_value=False)
            return {
                "x": element["x"],
                "seen": carried,
                "mean": update,
                "vector": tf.stack([element["x"], factor]),
                "text": tf.constant(["a", "b"]),
                "added": tf.group(added, counted),
            }

        train = compat.step(
            add,
            [tf.TensorSpec([], tf.int64)],
            per_worker_data=[np.array(10, np.int64)],
            dataset=elements,
        )
        measure = compat.step(
            lambda element: {"x": element["x"]}, [], on_coordinator=True, dataset=elements
        )
        endless = compat.step(
            lambda x: {"endless": x},
            [],
            dataset=lambda worker, workers: tf.data.Dataset.range(worker, 3, workers).repeat(),
        )
        other = compat.step(lambda: {"other": tf.constant(7)}, [])
        stray = tf.Variable(np.int64(0), name="stray", trainable=False)

        def drawn() -> Any:
            """Draws in a loop, takes from an iterator of its own, and forgets an operation."""
            stray.assign_add(1)
            _, total = tf.while_loop(
                lambda i, _: i < 3,
                lambda i, total: (i + 1, total + tf1.random_uniform([], seed=1)),
                [tf.constant(0), tf.constant(0.0)],
            )
            source = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(8).repeat())
            return {"drawn": total, "taken": source.get_next()}

        draw = compat.step(drawn, [tf.TensorSpec([], tf.int64)][:0])
    report: dict[str, Any] = {"passes": [], "measured": []}
    supervisor = compat.Supervisor(is_chief=server is None or server.is_chief, logdir=None)
    report["variables"] = sorted(supervisor.runtime.variables())
    with supervisor.managed_session(server.target if server else "") as session:
        for count in (1, 3):
            calls = []
            try:
                while len(calls) < 100:
                    if count == 1:
                        values = session.run(train, np.int64(1))
                    else:
                        values = session.run_many(train, np.ones(count, np.int64))
                    vector = values.pop("vector")
                    values.pop("text")
                    calls.append(dict(values, vector=vector.tolist(), planned=session.planned_step))
            except tf1.errors.OutOfRangeError:
                pass
            report["passes"].append(calls)
            session.restart(train)
            if server is None or server.runtime == "modern":
                left = session.read({"total": total, "global_step": global_step})
                report[f"left {count}"] = {k: int(v) for k, v in left.items()}
        for _ in range(2):
            try:
                while True:
                    report["measured"].append(int(session.run(measure)["x"]))
            except tf1.errors.OutOfRangeError:
                report["measured"].append("end")
            session.restart(measure)
        report["endless"] = [int(session.run_many(endless, count=2)["endless"]) for _ in range(9)]
        report["planned"] = session.planned_step
        report["alternating"] = [
            sorted(session.run(step)) for step in (other, endless, other, endless) for _ in range(3)
        ]
        report["draws"] = [session.run_many(draw, count=2) for _ in range(3)]
        report["stray"] = int(session.read({"stray": stray})["stray"])
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
