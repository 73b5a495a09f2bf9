"""Asks for the modern runtime, with or without eager execution, then for any; prints answers."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from typing import Any

import compat
from compat import tf, tf1
from compat._tensorflow import coordinator_module


def draw(drawn: Any) -> None:
    with tf1.Graph().as_default(), tf1.Session() as session:
        drawn.put(float(session.run(tf1.random_uniform([]))))


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def looped() -> float:
    """Returns the sum of 0, 1 and 2, added up in a loop that a device function places."""
    with tf1.device(compat.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
        _, total = tf.while_loop(
            lambda i, _: i < 3, lambda i, total: (i + 1, total + tf.cast(i, tf.float32)), [0, 0.0]
        )
    with tf1.Session() as session:
        return float(session.run(total))


def main(settings: dict[str, Any]) -> None:
    report: dict[str, Any] = {"has_modern": coordinator_module() is not None}
    threads = count_threads()
    if settings.get("without_eager"):
        tf1.disable_eager_execution()
    try:
        report["modern"] = compat.select_runtime("modern").name
    except compat.UserError as error:
        report["modern"] = str(error)
    report["threads"] = count_threads() - threads
    if report["modern"] == "modern" and settings.get("without_eager"):
        report["sum"] = looped()
    if not settings.get("without_eager"):
        report["auto"] = compat.select_runtime("auto").name
        forks = multiprocessing.get_context("fork")
        drawn: Any = forks.Queue()
        tasks = [forks.Process(target=draw, args=(drawn,)) for _ in range(3)]
        for task in tasks:
            task.start()
        report["drawn"] = [drawn.get(timeout=60) for _ in tasks]
        for task in tasks:
            task.join(timeout=60)
        report["keys"] = [{tensor: 1}[tensor] for tensor in (tf.constant(0), tf.Variable(0))]
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
