"""A task of a cluster whose jobs may have any names, in a session of any kind; prints its task."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import compat
from compat import tf, tf1

STEPS = 30


def train(session: Any, step: Any, stopped: Any) -> None:
    """Makes updates until there are enough."""
    while not stopped():
        session.run(step, np.float32(1))


def main(settings: dict[str, Any]) -> None:
    server = compat.Server(
        settings["cluster"], settings["job"], settings["index"], runtime=settings["runtime"]
    )
    if server.serves:
        server.join()
        print(json.dumps({"task": server.task.name}))
        return

    def update(x: Any) -> Any:
        loss = tf1.square(tf1.get_variable("w", initializer=np.float32(0)) - x)
        optimizer = tf1.train.GradientDescentOptimizer(0.01)
        return {"loss": loss, "train": optimizer.minimize(loss, tf1.train.get_global_step())}

    worker = "/job:{job}/task:{index}".format(**settings)
    setter = compat.replica_device_setter(worker_device=worker, cluster=settings["cluster"])
    with compat.device(setter):
        compat.get_or_create_global_step()
        step = compat.step(update, [tf.TensorSpec([], tf.float32)])
    kind, stop = settings["session"], compat.StopAtStepHook(last_step=STEPS)
    if kind == "Supervisor":
        supervisor = compat.Supervisor(is_chief=server.is_chief, logdir="logs")
        with supervisor.managed_session(server.target) as session:
            train(session, step, lambda: session.planned_step >= STEPS or supervisor.should_stop())
    elif kind == "SingularMonitoredSession" and server.is_chief:
        with compat.SingularMonitoredSession([stop], checkpoint_dir="logs") as session:
            train(session, step, session.should_stop)
    elif kind == "MonitoredTrainingSession":
        with compat.MonitoredTrainingSession(
            server.target, server.is_chief, "logs", hooks=[stop]
        ) as session:
            train(session, step, session.should_stop)
    else:
        creator = compat.ChiefSessionCreator if server.is_chief else compat.WorkerSessionCreator
        with compat.MonitoredSession(creator(master=server.target), [stop]) as session:
            train(session, step, session.should_stop)
    devices = sorted({placed.device for placed in step.operations()} - {""})
    print(json.dumps({"task": server.task.name, "chief": server.is_chief, "devices": devices}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
