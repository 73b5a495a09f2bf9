"""`python -m compat.doctor.training`: one task of a training of three steps, for a trial."""

from __future__ import annotations

import sys

import numpy as np

import compat
from compat import tf, tf1

_STEPS = 3
_COST = 1 / 64  # Each step halves the distance to the target, which is 1 at first.


def main(runtime: str, job: str, ps: str, worker: str) -> None:
    """Runs the task.

    Args:
      runtime: "legacy" or "modern".
      job: "ps" or "worker".
      ps: host:port of the parameter server.
      worker: host:port of the worker.

    Raises:
      ArithmeticError: the cost after the training is not the right one.
    """
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
            cost = tf.square(weight - target)
            return {"cost": cost, "train": optimizer.minimize(cost, global_step, [weight])}

        number = [tf.TensorSpec([], tf.float32)]
        train_op = compat.step(train, number)
        cost_op = compat.step(
            lambda x: {"cost": tf.square(weight - x)}, number, on_coordinator=True
        )
    supervisor = compat.Supervisor(logdir="logs")
    with supervisor.managed_session(server.target) as session:
        while session.planned_step < _STEPS:
            session.run(train_op, target)
        for _ in session.drain():
            pass
        cost = session.run(cost_op, target)["cost"]
    if cost != _COST:
        raise ArithmeticError(f"cost {cost} after {_STEPS} steps, expected {_COST}")


if __name__ == "__main__":
    main(*sys.argv[1:])
