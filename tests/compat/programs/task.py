"""One task of a cluster, which trains four weights or serves; prints what it saw."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

import compat
from compat import tf, tf1
from compat.checkpoint import files

if TYPE_CHECKING:
    from tests.compat.programs.cases import refusal
else:
    from cases import refusal

BATCH = np.ones(4, np.float32)


class Program:
    """Weights that are trained to be ones, and a marker that tells whether it was restored."""

    def __init__(self, server: compat.Server, sync: bool) -> None:
        setter = compat.replica_device_setter(
            worker_device=server.task.name, cluster=server.cluster
        )
        with compat.device(setter):
            self.global_step = compat.get_or_create_global_step()
            self.weights = tf.Variable(np.zeros(4, np.float32), name="weights")
            self.marker = tf.Variable(np.float32(1), name="marker", trainable=False)
            self._optimizer = tf1.train.GradientDescentOptimizer(0.1)
            self.sync_optimizer = None
            if sync:
                self._optimizer = self.sync_optimizer = tf1.train.SyncReplicasOptimizer(
                    self._optimizer, server.num_workers, server.num_workers
                )
            self.train = compat.step(self._train, [tf.TensorSpec([4], tf.float32)])

    def _train(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            cost = tf.reduce_sum(tf.square(self.weights - x))
        gradient = tape.gradient(cost, self.weights)
        update = self._optimizer.apply_gradients(
            [(gradient, self.weights)], global_step=self.global_step
        )
        return {"cost": cost, "train": update}


def write_checkpoint(logdir: str) -> None:
    """Leaves what a training of 100 updates would have left."""
    values = {"weights": BATCH, "marker": np.float32(7), "global_step": np.int64(100)}
    prefix = f"{logdir}/model.ckpt-100"
    files.write(prefix, values)
    tf1.train.update_checkpoint_state(logdir, prefix, [prefix])


def about(server: compat.Server) -> dict[str, Any]:
    """Returns what a server says of itself, and what it refuses to a task that trains."""
    has_server = server.server_def is not None
    arguments = (server.cluster, server.task.job, server.task.index)
    return {
        "role": server.role.name,
        "is_chief": server.is_chief,
        "num_workers": server.num_workers,
        "trainer_index": server.trainer_index,
        "target": server.target,
        "has_server": has_server,
        "join": refusal(server.join),
        "again": refusal(lambda: compat.Server(*arguments)) if has_server else None,
    }


@contextlib.contextmanager
def opened(supervisor: compat.Supervisor, target: str, of_2016: bool) -> Iterator[Any]:
    """Opens a session as programs do today, or as those of 2016 did."""
    if not of_2016:
        with supervisor.managed_session(target) as session:
            yield session
        return
    with supervisor.prepare_or_wait_for_session(target) as session:
        yield session
    supervisor.stop()


def train(server: compat.Server, settings: dict[str, Any]) -> dict[str, Any]:
    report = {} if server.serves else about(server)
    program = Program(server, settings.get("sync", False))
    logdir = settings.get("logdir")
    if settings.get("resume") and server.is_chief:
        write_checkpoint(logdir)
    supervisor = compat.Supervisor(
        is_chief=server.is_chief, logdir=logdir, sync_optimizer=program.sync_optimizer
    )
    print("built", flush=True)
    time.sleep(settings.get("delay", 0))
    print("opening a session", flush=True)
    report["steps"] = []
    with opened(supervisor, server.target, settings.get("of_2016", False)) as session:
        if not supervisor.should_stop():
            report["first"] = [session.planned_step, float(session.run(program.marker))]
        while not supervisor.should_stop() and session.planned_step < settings["steps"]:
            values = session.run(program.train, BATCH)
            report["steps"].append(values["global_step"])
            if len(report["steps"]) == 1:
                print("training", flush=True)
            if settings.get("fails") and len(report["steps"]) == 3:
                raise ValueError("the body failed")
            time.sleep(settings.get("pause", 0))
        report["steps"] += [values["global_step"] for values in session.drain()]
        if settings.get("idle"):
            print("idle", flush=True)
            time.sleep(settings["idle"])
    return report


def train_graph(server: compat.Server, settings: dict[str, Any]) -> dict[str, Any]:
    """Trains by placeholders, feeds and fetches alone."""
    setter = compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)
    with compat.device(setter):
        x = tf1.placeholder(tf.float32, [4], name="x")
        weights = tf1.get_variable("weights", [4], initializer=tf1.zeros_initializer())
        step = compat.get_or_create_global_step()
        cost = tf.reduce_sum(tf.square(weights - x))
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(cost, global_step=step)
        tf1.summary.scalar("cost", cost)
    supervisor = compat.Supervisor(is_chief=server.is_chief, logdir=settings.get("logdir"))
    report: dict[str, Any] = {**about(server), "devices": sorted({weights.device, step.device})}
    report["costs"] = []
    with supervisor.managed_session(server.target) as session:
        while session.run(step) < settings["steps"]:
            report["costs"].append(float(session.run([cost, train], {x: BATCH})[0]))
            if len(report["costs"]) == 3:
                print("training", flush=True)
            time.sleep(settings.get("pause", 0))
        report["weights"] = session.run("weights:0").tolist()
    return report


def main(settings: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A background job may ignore it.
    if settings.get("exits"):  # As a program under a cluster manager does.
        signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    if settings.get("graph"):  # One of TensorFlow 1.x, on either runtime.
        tf1.disable_eager_execution()
    server = compat.Server(
        settings["cluster"],
        settings["job"],
        settings["index"],
        runtime=settings["runtime"],
        rendezvous_timeout=settings.get("rendezvous_timeout", 120),
    )
    if server.serves and (settings["job"] == "ps" or not settings.get("of_2016")):
        server.join()
        return
    try:
        report = (train_graph if settings.get("graph") else train)(server, settings)
    except (tf1.errors.OpError, compat.PeerError) as error:
        # TensorFlow raises where it notices, else our session does.
        lost = error if isinstance(error, compat.PeerError) else None
        lost = lost or server.diagnose(error)
        if lost is None:
            raise
        report = {"lost": str(lost), "exit_code": lost.exit_code}
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
