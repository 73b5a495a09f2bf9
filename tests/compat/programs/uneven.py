"""One task of a cluster whose workers have different numbers of examples; the chief saves."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import compat
from compat import tf, tf1
from compat.checkpoint import files
from compat.checkpoint.io import CheckpointIO


def build(server: compat.Server, examples: list[int]) -> Any:
    """Returns the step, which adds an example to a total on the parameter server."""
    setter = compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)
    with compat.device(setter):
        step = compat.get_or_create_global_step()
        total = tf.Variable(np.int64(0), name="total", trainable=False)

        def add(example: Any) -> Any:
            added = total.assign_add(example + 1, read_value=False)
            with tf.control_dependencies([added]):
                return {"train": step.assign_add(1, read_value=False)}

        return compat.step(
            add, [], dataset=lambda worker, workers: tf.data.Dataset.range(examples[worker])
        )


def fill_table(server: compat.Server, seconds: float) -> None:
    """Makes this task's session take so long to open, as where it reads a large table."""
    with tf1.device(server.task.name):
        filled = tf1.py_func(lambda: time.sleep(seconds), [], [])
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, filled)


def train(session: Any, step: Any, should_stop: Any = lambda: False) -> None:
    """Runs the step to the end of this worker's data."""
    made = 0
    while not should_stop():
        session.run(step)
        made += 1
        print(f"made {made}", flush=True)
        time.sleep(0.1)


def train_until_stop(
    server: compat.Server, supervisor: compat.Supervisor, step: Any, given: dict[str, Any]
) -> None:
    """Trains as a program of 2016 that calls `stop` itself."""
    session = supervisor.prepare_or_wait_for_session(server.target)
    if given.get("loops"):
        supervisor.loop(0.2, print, args=["a call of the loop"], kwargs={"flush": True})
    with contextlib.suppress(tf1.errors.OutOfRangeError):
        train(session, step)
    if given.get("fails"):
        try:
            raise ValueError("the chief fails")
        finally:
            supervisor.stop()
    if server.is_chief:
        supervisor.save(session)
    over = Path(given.get("stops_after", given["logdir"]))  # Exists once the other has left.
    while server.is_chief and not over.exists():
        time.sleep(0.1)
    supervisor.stop()
    session.close()
    if not server.is_chief:
        over.touch()


def main(runtime: str, cluster: Any, job: str, index: int, **given: Any) -> None:
    server = compat.Server(cluster, job, index, runtime=runtime)
    if server.serves:
        server.join()
        return
    step, logdir = build(server, given["examples"]), given["logdir"]
    if "fills_for" in given:
        fill_table(server, given["fills_for"])
    if given["kind"] == "monitored":
        with compat.MonitoredTrainingSession(
            server.target, server.is_chief, logdir, save_checkpoint_secs=600
        ) as session:
            train(session, step, session.should_stop)
    else:
        supervisor = compat.Supervisor(
            is_chief=server.is_chief, logdir=logdir, summary_op=None, save_model_secs=600
        )
        if given["kind"] == "managed":
            with supervisor.managed_session(server.target) as session:
                train(session, step)
        else:
            train_until_stop(server, supervisor, step, given)
    if server.is_chief:
        values = files.read(CheckpointIO(logdir).history()[-1])
        print(json.dumps({name: int(values[name]) for name in ("global_step", "total")}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
