"""One task of a cluster that trains in a `MonitoredTrainingSession`; prints what it saw."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

import compat
from compat import tf, tf1


class Said(compat.SessionRunHook):  # type: ignore[misc]
    """Prints the global step of each session that is made, and of its end."""

    def begin(self) -> None:
        self.step = tf1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        print(f"session at {session.run(self.step)}")

    def end(self, session: Any) -> None:
        print(f"end at {session.run(self.step)}")


def main(settings: dict[str, Any]) -> None:
    server = compat.Server(
        settings["cluster"],
        settings["job"],
        settings["index"],
        runtime=settings["runtime"],
        rendezvous_timeout=settings.get("timeout", 60.0),
    )
    if settings["job"] == "ps":
        server.join()
        return
    hooks = [Said(), compat.StopAtStepHook(last_step=settings["steps"])]
    setter = compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)

    def train_step(x: Any) -> Any:
        global_step = tf1.train.get_global_step()
        w = tf1.get_variable("w", initializer=np.float32(0))
        loss = tf1.square(w - x)
        tf1.summary.scalar("loss", loss)
        optimizer = tf1.train.GradientDescentOptimizer(0.25)
        if settings.get("sync"):
            replicas = server.num_workers
            optimizer = tf1.train.SyncReplicasOptimizer(optimizer, replicas, replicas)
            hooks.append(optimizer.make_session_run_hook(server.is_chief, num_tokens=0))
        update = optimizer.minimize(loss, global_step=global_step)
        return {"loss": loss, "train": update}

    with compat.device(setter):
        compat.get_or_create_global_step()
        train = compat.step(train_step, [tf.TensorSpec([], tf.float32)])
    runs = 0
    with compat.MonitoredTrainingSession(
        server.target,
        is_chief=server.is_chief,
        checkpoint_dir=settings.get("logdir"),
        hooks=hooks,
        save_checkpoint_steps=settings.get("save_steps", 10),
        stop_grace_period_secs=5,
    ) as session:
        while not session.should_stop():
            values = session.run(train, np.float32(1))
            runs += 1
            time.sleep(settings.get("pause", 0.0))
            print(f"step {values['global_step']:.0f}")
    print(json.dumps({"runs": runs}))


if __name__ == "__main__":
    compat.run_main(lambda argv: main(json.loads(argv[1])))
