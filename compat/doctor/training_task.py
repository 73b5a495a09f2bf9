"""`python -m compat.doctor.training_task`: one task of the short run that tests a runtime."""

from __future__ import annotations

import sys

import numpy as np

import compat
from compat import tf, tf1

_STEPS = 3
_LOSS = 1 / 64  # Each step halves the distance to the target, which is 1 initially.


def main(runtime: str, job: str, ps: str, worker: str) -> None:
    """Runs the job "ps" or "worker" of a cluster at two addresses; raises if the loss is wrong."""
    server = compat.Server({"ps": [ps], "worker": [worker]}, job, runtime=runtime)
    if server.serves:
        server.join()
        return
    target = np.float32(1)
    with compat.device(compat.replica_device_setter(cluster=server.cluster)):
        weight = tf.Variable(np.float32(0), name="weight")
        global_step = compat.get_or_create_global_step()
        optimizer = tf1.train.GradientDescentOptimizer(0.25)

        def train(target: tf.Tensor) -> dict[str, tf.Tensor]:
            loss = tf.square(weight - target)
            return {"loss": loss, "train": optimizer.minimize(loss, global_step, [weight])}

        number = [tf.TensorSpec([], tf.float32)]

        def measure(target: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"loss": tf.square(weight - target)}

        train_op = compat.step(train, number)
        loss_op = compat.step(measure, number, on_coordinator=True)
    supervisor = compat.Supervisor(logdir="logs")
    with supervisor.managed_session(server.target) as session:
        while session.planned_step < _STEPS:
            session.run(train_op, target)
        for _ in session.drain():
            pass
        loss = session.run(loss_op, target)["loss"]
    if loss != _LOSS:
        raise ArithmeticError(f"loss {loss} after {_STEPS} steps, expected {_LOSS}")


if __name__ == "__main__":
    main(*sys.argv[1:])
