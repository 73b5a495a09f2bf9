"""One task of a cluster that opens session after session; prints the steps of each."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

import compat
from compat import tf, tf1

ONE = np.float32(1)


def make_step() -> compat.Step:
    """Returns a step that brings a weight nearer to its input."""

    def train_step(x: Any) -> Any:
        weight = tf1.get_variable("weight", initializer=np.float32(0))
        loss = tf1.square(weight - x)
        optimizer = tf1.train.GradientDescentOptimizer(0.25)
        step = compat.get_or_create_global_step()
        return {"loss": loss, "train": optimizer.minimize(loss, global_step=step)}

    return compat.step(train_step, [tf.TensorSpec([], tf.float32)])


def supervised(server: compat.Server, step: compat.Step, settings: dict[str, Any]) -> list[float]:
    supervisor = compat.Supervisor(is_chief=server.is_chief, logdir=settings["logdir"])
    losses: list[float] = []
    with supervisor.managed_session(server.target) as session:
        while not supervisor.should_stop() and len(losses) < settings["steps"]:
            losses.append(session.run(step, ONE)["loss"])
            train_or_leave(settings, losses)
    return losses


def monitored(server: compat.Server, step: compat.Step, settings: dict[str, Any]) -> list[float]:
    losses: list[float] = []
    with compat.MonitoredTrainingSession(
        server.target,
        is_chief=server.is_chief,
        checkpoint_dir=settings["logdir"],
        save_checkpoint_steps=1000,
        stop_grace_period_secs=5,
    ) as session:
        while not session.should_stop() and len(losses) < settings["steps"]:
            losses.append(session.run(step, ONE)["loss"])
            train_or_leave(settings, losses)
    return losses


def train_or_leave(settings: dict[str, Any], losses: list[float]) -> None:
    """Leaves the session by `sys.exit` after as many steps as `exits_after`."""
    if len(losses) == 1:
        print("training", flush=True)
    if len(losses) == settings.get("exits_after"):
        sys.exit(settings["exits_with"])
    time.sleep(settings.get("pause", 0))


def main(settings: dict[str, Any]) -> None:
    server = compat.Server(
        settings["cluster"],
        settings["job"],
        settings["index"],
        runtime=settings["runtime"],
        rendezvous_timeout=settings.get("rendezvous_timeout", 60),
    )
    if settings["job"] == "ps":
        server.join()
        server.join()  # Returns at once.
        print(json.dumps(server.state.value))
        return
    setter = compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)
    with compat.device(setter):
        compat.get_or_create_global_step()
        step = make_step()
    kinds: dict[str, Callable[..., list[float]]] = {
        "supervised": supervised,
        "monitored": monitored,
    }
    report = []
    for kind in settings["sessions"]:
        losses = kinds[kind](server, step, settings)
        report.append(losses)
        print(f"left a session, {server.state.value}", flush=True)
        while "waits_for" in settings and not Path(settings["waits_for"]).exists():
            time.sleep(0.1)
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
